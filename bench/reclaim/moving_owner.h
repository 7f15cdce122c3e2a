#ifndef GMB_BENCH_RECLAIM_MOVING_OWNER_H_
#define GMB_BENCH_RECLAIM_MOVING_OWNER_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/reclaim/event_log.h"
#include "bench/reclaim/owner.h"
#include "bench/reclaim/stage.h"

namespace gmb::bench {

// An owner in a full pool whose leases go and come, and when they may go again.
class MovingOwner {
 public:
  // `stage` must outlive it.
  [[nodiscard]] static absl::StatusOr<MovingOwner> Start(
      Stage* stage, const Owner::Leases& leases);

  // Leaves its scope and waits until its leases may be taken.
  [[nodiscard]] absl::Status Park();
  struct Taken {
    absl::Duration mapped;  // from another's request until it has them
    Moves evicted;
  };
  // Parked before: another tenant takes its bytes and gives them back, and the
  // pool is at rest again.
  [[nodiscard]] absl::StatusOr<Taken> GetTaken();
  struct Back {
    absl::Duration entered;  // Client::Enter
    Moves restored;
  };
  [[nodiscard]] absl::StatusOr<Back> ComeBack();
  [[nodiscard]] Owner& owner() { return owner_; }

 private:
  MovingOwner(Stage* stage, Owner owner, uint64_t bytes)
      : stage_(stage), owner_(std::move(owner)), bytes_(bytes) {}

  Stage* stage_;
  Owner owner_;
  uint64_t bytes_;
  absl::Duration last_restore_;
  absl::Time restored_at_ = absl::InfinitePast();
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_RECLAIM_MOVING_OWNER_H_
