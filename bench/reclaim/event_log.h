#ifndef GMB_BENCH_RECLAIM_EVENT_LOG_H_
#define GMB_BENCH_RECLAIM_EVENT_LOG_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/admin_client.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::bench {

// How leases went, by the broker's own clock.
struct Moves {
  size_t leases = 0;
  absl::Duration window;   // from the first one's start to the last one's end
  absl::Duration longest;  // of one lease
};

// The broker's events, as `gmb watch` sees them. Thread-safe.
class EventLog {
 public:
  // `admin` must outlive it.
  explicit EventLog(const cli::AdminClient* admin);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  ~EventLog();

  // True once an event has come: the broker sends those from now on.
  [[nodiscard]] bool AwaitAny(absl::Duration patience);
  void Clear();
  // Waits until events of this kind since Clear() tell of `bytes`. DATA_LOSS
  // when events were missed; DEADLINE_EXCEEDED tells what came.
  [[nodiscard]] absl::StatusOr<Moves> Await(const std::string& kind,
                                            uint64_t bytes);
  // Whether there was one since Clear().
  [[nodiscard]] bool Has(const std::string& kind);

 private:
  void Read();

  const std::unique_ptr<cli::EventReader> reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::Event> events_;
  bool missed_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_RECLAIM_EVENT_LOG_H_
