#include "bench/reclaim/moving_owner.h"

#include "absl/time/clock.h"

namespace gmb::bench {

absl::StatusOr<MovingOwner> MovingOwner::Start(Stage* stage,
                                               const Owner::Leases& leases) {
  absl::StatusOr<Owner> owner = stage->StartOwner(leases);
  if (!owner.ok()) return owner.status();
  if (absl::Status filled = stage->Fill(); !filled.ok()) return filled;
  return MovingOwner(stage, *std::move(owner), leases.total());
}

absl::Status MovingOwner::Park() {
  if (absl::Status left = owner_.Leave(); !left.ok()) return left;
  return stage_->AwaitParked(last_restore_, restored_at_);
}

absl::StatusOr<MovingOwner::Taken> MovingOwner::GetTaken() {
  stage_->events().Clear();
  absl::StatusOr<Stage::Taken> taken = stage_->Take(bytes_);
  if (!taken.ok()) return taken.status();
  const absl::StatusOr<Moves> evicted =
      stage_->events().Await("evicted", bytes_);
  if (!evicted.ok()) return evicted.status();
  absl::Status released = std::move(taken->lease).Release();
  if (released.ok()) released = stage_->AwaitRest();
  if (!released.ok()) return released;
  return Taken{taken->took, *evicted};
}

absl::StatusOr<MovingOwner::Back> MovingOwner::ComeBack() {
  stage_->events().Clear();
  const absl::StatusOr<absl::Duration> entered = owner_.Enter();
  if (!entered.ok()) return entered.status();
  restored_at_ = absl::Now();
  const absl::StatusOr<Moves> restored =
      stage_->events().Await("restored", bytes_);
  if (!restored.ok()) return restored.status();
  last_restore_ = restored->longest;
  return Back{*entered, *restored};
}

}  // namespace gmb::bench
