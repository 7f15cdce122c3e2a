#ifndef GMB_BENCH_RECLAIM_STAGE_H_
#define GMB_BENCH_RECLAIM_STAGE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/reclaim/event_log.h"
#include "bench/reclaim/options.h"
#include "bench/reclaim/owner.h"
#include "client/cli/demo/broker_process.h"
#include "gmb/client.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::bench {

// A real broker, its events, and clients of two tenants in this process: one
// that takes what parked owners hold, and one that fills the rest of the pool.
class Stage {
 public:
  // Waits until the host pool is prepared. `dir` takes the broker's files.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Stage>> Open(
      const ReclaimOptions& options, const std::string& dir);

  [[nodiscard]] const std::string& uuid() const { return uuid_; }
  [[nodiscard]] EventLog& events() { return *events_; }
  [[nodiscard]] const v1::HostPoolStatus& host_pool() const {
    return host_pool_;
  }
  // Why PRESERVE leases of so many bytes cannot be parked and evicted here, or
  // empty.
  [[nodiscard]] std::string TooLarge(uint64_t bytes) const;

  // Processes of other tenants.
  [[nodiscard]] absl::StatusOr<Owner> StartOwner(const Owner::Leases& leases);
  [[nodiscard]] absl::StatusOr<Child> StartNeighbour(const std::string& kernel,
                                                     uint64_t bytes);

  // Leases all that nobody holds, so that further bytes must be taken from
  // somebody. Unfill is for the end of a section, when its processes are gone.
  [[nodiscard]] absl::Status Fill();
  [[nodiscard]] absl::Status Unfill();

  struct Taken {
    Lease lease;
    absl::Duration took;  // from the request to the mapped lease
  };
  [[nodiscard]] absl::StatusOr<Taken> Take(uint64_t bytes);

  // Waits until the owner is parked and its leases may be taken: they stay for
  // four times what the last restore took.
  [[nodiscard]] absl::Status AwaitParked(const absl::Duration& last_restore,
                                         absl::Time restored);
  // Of the owner's bytes, those on the device with a true copy.
  [[nodiscard]] absl::StatusOr<uint64_t> BackedBytes() const;
  // Waits until nothing is on its way and free memory is ready again.
  [[nodiscard]] absl::Status AwaitRest() const;

 private:
  Stage() = default;
  absl::Status Start(const ReclaimOptions& options, const std::string& dir);
  absl::Status Connect(const std::string& dir);
  absl::Status AwaitHostPool();
  [[nodiscard]] std::string SocketDir(const char* tenant) const;
  [[nodiscard]] absl::StatusOr<v1::GetStatusResponse> Status() const;
  [[nodiscard]] absl::StatusOr<v1::SessionInfo> OwnersSession() const;

  std::unique_ptr<cli::BrokerProcess> broker_;
  std::unique_ptr<EventLog> events_;
  std::unique_ptr<Client> taker_;
  std::unique_ptr<Client> filler_;
  Lease filling_;
  std::string uuid_;
  std::string log_;  // of the processes
  v1::HostPoolStatus host_pool_;
  uint64_t pool_bytes_ = 0;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_RECLAIM_STAGE_H_
