// Parked memory is copied to the host pool ahead of need, so that taking it
// later costs no copy: at a bounded rate, and never beside a waiting request.
#include "quota/backing.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "broker/machine/backed.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/machine.h"
#include "broker/machine/reclaim_rows.h"
#include "broker/machine/turn.h"

namespace gmb::broker {
namespace {

constexpr quota::Nanoseconds kLook = std::chrono::milliseconds(100);
// Between two slices of the leases that are looked at.
constexpr quota::Nanoseconds kSlicePause = std::chrono::milliseconds(10);
constexpr quota::Nanoseconds kBackOff = std::chrono::seconds(10);

}  // namespace

void Machine::BackAhead(quota::Instant now, Turn& turn) {
  if (state_.options.backing.bytes_per_second == 0 || now < state_.backing_at)
    return;
  state_.backing_at = now + kLook;
  const bool anybody_waits = state_.engine.waiting() > 0 ||
                             !state_.moving.empty() || !state_.pausing.empty();
  const uint64_t available = state_.backing_budget.AvailableBytes(now);
  if (anybody_waits || available == 0) return;
  if (!BackingRound(now, available)) {
    state_.backing_at = now + kSlicePause;
    return;
  }
  const auto best = std::exchange(state_.backing_pass, {}).best;
  if (!best.has_value()) return;
  const auto step = NextToBackAmong({*best}, now, available);
  if (step.has_value())
    StartBacking(&state_.LeaseAt(step->lease), step->bytes, now, turn);
}

// Looks at some leases more, and remembers the best of all. Whether it has seen
// all of them.
bool Machine::BackingRound(quota::Instant now, uint64_t available) {
  BackingPass& pass = state_.backing_pass;
  std::vector<quota::LeaseId> some;
  if (pass.best.has_value() && state_.leases.contains(*pass.best))
    some.push_back(*pass.best);
  bool all = true;
  for (auto pool = state_.pools.lower_bound(pass.pool);
       pool != state_.pools.end() && all; ++pool) {
    if (pool->first != pass.pool)
      pass = {
          .pool = pool->first, .tenant = {}, .lease = {}, .best = pass.best};
    const ReclaimIndex::Listed& listed = state_.reclaim.ListedIn(pool->first);
    for (auto its = listed.lower_bound(pass.tenant); its != listed.end() && all;
         ++its) {
      if (its->first != pass.tenant) pass.lease = {};
      pass.tenant = its->first;
      for (auto lease = its->second.lower_bound(pass.lease);
           lease != its->second.end(); ++lease) {
        pass.lease = *lease;
        all = state_.look_budget.any_left();
        if (!all) break;
        state_.look_budget.Spend(1);
        some.push_back(*lease);
      }
    }
  }
  const auto step = NextToBackAmong(some, now, available);
  pass.best = step.has_value() ? std::optional(step->lease) : std::nullopt;
  return all;
}

std::optional<quota::BackingStep> Machine::NextToBackAmong(
    const std::vector<quota::LeaseId>& leases, quota::Instant now,
    uint64_t available) const {
  const ReclaimRows rows = RowsOf(state_, leases, now);
  return quota::NextToBack(
      {.leases = rows.leases,
       .tenants = rows.tenants,
       .host_free_bytes = state_.host_books.unreserved_bytes()},
      now, /*anybody_waits=*/false, available, state_.options.backing);
}

// Whole slabs, as many as the budget has, and the next as soon as it has one
// more.
void Machine::StartBacking(Lease* lease, uint64_t bytes, quota::Instant now,
                           Turn& turn) {
  // A scope may have come in since the step was chosen.
  if (GateOver(state_, *lease, now) < quota::Gate::kParked) return;
  if (!ReserveRoom(*lease)) {
    lease->back_off_until = now + kBackOff;
    return;
  }
  lease->backed_slabs = BackedSlabs(state_, *lease);
  if (lease->backed_slabs == 0) {
    state_.host_books.MarkUntrue(lease->id);
    if (!lease->shared)
      lease->backed_epoch =
          state_.SessionAt(lease->request.session).gate->epoch();
  }
  size_t end = lease->backed_slabs;
  uint64_t sum = 0;
  while (end < lease->slabs.size() && sum + lease->slabs[end].bytes <= bytes)
    sum += lease->slabs[end++].bytes;
  if (sum == 0) {
    state_.backing_at =
        state_.backing_budget.AvailableAt(lease->slabs[end].bytes, now);
    return;
  }
  state_.backing_budget.Spend(sum, now);
  lease->backing_slabs = static_cast<uint32_t>(end - lease->backed_slabs);
  lease->moved = absl::OkStatus();
  lease->move_started = now;
  CopyContents(lease, device::CopyDirection::kOut, {lease->backed_slabs, end},
               turn);
}

// The copy is true if no scope has come in since it began.
void Machine::OnBacked(Lease* lease, Turn& turn) {
  const uint32_t copied = std::exchange(lease->backing_slabs, 0);
  const quota::Instant now = turn.now();
  if (state_.engine.Lease(lease->id)
          ->hard) {  // its gate was turned off meanwhile
    lease->moved = absl::OkStatus();
    return GiveUpRoom(lease);
  }
  const bool holds =
      lease->sealed || state_.SessionAt(lease->request.session)
                           .gate->UnusedSince(lease->backed_epoch);
  if (!lease->moved.ok() || !holds) {
    lease->backed_slabs = 0;
    if (!lease->moved.ok()) lease->back_off_until = now + kBackOff;
    lease->moved = absl::OkStatus();
    return;
  }
  lease->backed_slabs += copied;
  state_.backing_at = std::min(state_.backing_at, now);
  if (lease->backed_slabs < lease->slabs.size()) return;
  lease->backed_slabs = 0;
  state_.host_books.MarkTrue(lease->id);
  PublishMove("backed", *lease, now - lease->move_started, "", turn);
}

}  // namespace gmb::broker
