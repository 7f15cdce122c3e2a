#ifndef GMB_BENCH_BROKER_WAITER_H_
#define GMB_BENCH_BROKER_WAITER_H_

#include <cstdint>
#include <future>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmb/client.h"

namespace gmb::bench {

// A request that waits in the broker's queue, on a thread of its own.
// Withdrawn when destroyed.
class Waiter {
 public:
  Waiter(Client* client, uint64_t bytes, const std::string& uuid,
         absl::Duration wait = absl::Minutes(1));

  // Returns when it is in the queue. FAILED_PRECONDITION when it was answered
  // without waiting.
  [[nodiscard]] absl::Status AwaitQueued();

  struct Served {
    absl::Time at;  // granted and mapped
    Lease lease;
  };
  [[nodiscard]] absl::StatusOr<Served> Await();

 private:
  std::promise<absl::Status> queued_;
  bool told_ = false;  // on the thread alone
  std::promise<absl::StatusOr<Served>> served_;
  std::jthread thread_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_WAITER_H_
