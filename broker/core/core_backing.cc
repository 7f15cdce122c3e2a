// Parked memory is copied to the host pool ahead of need, so that taking it
// later costs no copy: at a bounded rate, and never beside a waiting request.
#include <algorithm>
#include <chrono>
#include <utility>

#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "quota/backing.h"

namespace gmb::broker {
namespace {

constexpr quota::Nanoseconds kLook = std::chrono::milliseconds(100);
constexpr quota::Nanoseconds kBackOff = std::chrono::seconds(10);

}  // namespace

void Core::BackAhead(quota::Instant now, Afterwards* after) {
  if (options_.backing.bytes_per_second == 0 || now < backing_at_) return;
  backing_at_ = now + kLook;
  const bool anybody_waits =
      engine_.waiting() > 0 || !moving_.empty() || !pausing_.empty();
  const uint64_t available = backing_budget_.AvailableBytes(now);
  if (anybody_waits || available == 0) return;
  const ReclaimRows rows = BuildRows(now);
  const auto step =
      quota::NextToBack({.leases = rows.leases,
                         .tenants = rows.tenants,
                         .host_free_bytes = host_books_.unreserved_bytes()},
                        now, anybody_waits, available, options_.backing);
  if (step.has_value())
    StartBacking(leases_.at(step->lease).get(), step->bytes, now, after);
}

// Whole slabs, as many as the budget has, and the next as soon as it has one
// more.
void Core::StartBacking(Lease* lease, uint64_t bytes, quota::Instant now,
                        Afterwards* after) {
  // A scope may have come in since the step was chosen.
  if (GateOver(*lease, now) < quota::Gate::kParked) return;
  if (!ReserveRoom(*lease)) {
    lease->back_off_until = now + kBackOff;
    return;
  }
  lease->backed_slabs = BackedSlabs(*lease);
  if (lease->backed_slabs == 0) {
    host_books_.MarkUntrue(lease->id);
    if (!lease->shared)
      lease->backed_epoch = sessions_.at(lease->request.session)->gate->epoch();
  }
  size_t end = lease->backed_slabs;
  uint64_t sum = 0;
  while (end < lease->slabs.size() && sum + lease->slabs[end].bytes <= bytes)
    sum += lease->slabs[end++].bytes;
  if (sum == 0) {
    backing_at_ = backing_budget_.AvailableAt(lease->slabs[end].bytes, now);
    return;
  }
  backing_budget_.Spend(sum, now);
  lease->backing_slabs = static_cast<uint32_t>(end - lease->backed_slabs);
  lease->moved = absl::OkStatus();
  lease->move_started = now;
  CopyContents(lease, device::CopyDirection::kOut, {lease->backed_slabs, end},
               after);
}

// The copy is true if no scope has come in since it began.
void Core::OnBacked(Lease* lease) {
  const uint32_t copied = std::exchange(lease->backing_slabs, 0);
  const quota::Instant now = deps_.clock->Now();
  if (engine_.Lease(lease->id)->hard) {  // its gate was turned off meanwhile
    lease->moved = absl::OkStatus();
    return GiveUpRoom(lease);
  }
  const bool holds =
      lease->sealed || sessions_.at(lease->request.session)
                           ->gate->UnusedSince(lease->backed_epoch);
  if (!lease->moved.ok() || !holds) {
    lease->backed_slabs = 0;
    if (!lease->moved.ok()) lease->back_off_until = now + kBackOff;
    lease->moved = absl::OkStatus();
    return;
  }
  lease->backed_slabs += copied;
  backing_at_ = std::min(backing_at_, now);
  if (lease->backed_slabs < lease->slabs.size()) return;
  lease->backed_slabs = 0;
  host_books_.MarkTrue(lease->id);
  PublishMove("backed", *lease, now - lease->move_started, "");
}

}  // namespace gmb::broker
