// Parked memory is copied to the host pool ahead of need, so that taking it
// later costs no copy: at a bounded rate, and never beside a waiting request.
#include "quota/backing.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "broker/machine/backed.h"
#include "broker/machine/host_desk.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
#include "broker/machine/reclaim_rows.h"
#include "broker/machine/recorder.h"

namespace gmb::broker {
namespace {

constexpr quota::Nanoseconds kBackingLook = std::chrono::milliseconds(100);
// If nothing was found. Looks for who lacks memory share their budget with this.
constexpr quota::Nanoseconds kLookALease = std::chrono::milliseconds(1);
// Between two slices of the leases that are looked at.
constexpr quota::Nanoseconds kSlicePause = std::chrono::milliseconds(10);

// As far as the lease alone says. The rest takes a look at its users.
bool MayBack(const State& state, const Lease& lease) {
  if (!lease.sharing->sealed) return !state.options.backing.sealed_alone();
  return state.host_books->TrueCopy(lease.id) == nullptr;
}

std::optional<quota::BackingStep> NextToBackAmong(
    const State& state, const std::vector<quota::LeaseId>& leases,
    quota::Instant now, uint64_t available) {
  const ReclaimRows rows = RowsOf(state, leases, now);
  return quota::NextToBack(
      {.leases = rows.leases,
       .tenants = rows.tenants,
       .host_free_bytes = state.host_books->unreserved_bytes()},
      now, /*anybody_waits=*/false, available, state.options.backing);
}

}  // namespace

void HostDesk::BackAhead(quota::Instant now, Turn& turn) {
  if (state_.options.backing.rate() == 0 || now < *state_.backing_at) return;
  state_.backing_at.Edit({}) = now + kBackingLook;
  const bool anybody_waits = state_.engine->waiting() > 0 ||
                             !state_.moving->empty() ||
                             !state_.pausing->empty();
  const uint64_t available = state_.backing_budget.Edit({}).AvailableBytes(now);
  if (anybody_waits || available == 0) return;
  if (!BackingRound(now, available)) {
    state_.backing_at.Edit({}) = now + kSlicePause;
    return;
  }
  const BackingPass pass = std::exchange(state_.backing_pass.Edit({}), {});
  const auto& best = pass.best;
  if (!best.has_value()) {
    state_.backing_at.Edit({}) =
        now +
        std::max(kBackingLook, static_cast<int64_t>(pass.seen) * kLookALease);
    return;
  }
  const auto step = NextToBackAmong(state_, {*best}, now, available);
  if (step.has_value())
    StartBacking(&state_.LeaseAt(step->lease), step->bytes, now, turn);
}

// Looks at some leases more, and remembers the best of all. Whether it has seen
// all of them.
bool HostDesk::BackingRound(quota::Instant now, uint64_t available) {
  BackingPass& pass = state_.backing_pass.Edit({});
  std::vector<quota::LeaseId> some;
  if (pass.best.has_value() && state_.leases->contains(*pass.best))
    some.push_back(*pass.best);
  bool all = true;
  for (auto pool = state_.pools->lower_bound(pass.pool);
       pool != state_.pools->end() && all; ++pool) {
    if (pool->first != pass.pool) {
      pass.pool = pool->first;
      pass.tenant = {};
      pass.lease = {};
    }
    if (!BacksAhead(state_, *pool->second, now)) continue;
    const ReclaimIndex::Listed& listed = state_.reclaim->ListedIn(pool->first);
    for (auto its = listed.lower_bound(pass.tenant); its != listed.end() && all;
         ++its) {
      if (its->first != pass.tenant) pass.lease = {};
      pass.tenant = its->first;
      for (auto lease = its->second.lower_bound(pass.lease);
           lease != its->second.end(); ++lease) {
        pass.lease = *lease;
        all = state_.look_budget->any_left();
        if (!all) break;
        lookout_.Spend(1);
        ++pass.seen;
        if (MayBack(state_, state_.LeaseAt(*lease))) some.push_back(*lease);
      }
    }
  }
  const auto step = NextToBackAmong(state_, some, now, available);
  pass.best = step.has_value() ? std::optional(step->lease) : std::nullopt;
  return all;
}

// Whole slabs, as many as the budget has, and the next as soon as it has one
// more.
void HostDesk::StartBacking(Lease* lease, uint64_t bytes, quota::Instant now,
                            Turn& turn) {
  // A scope may have come in since the step was chosen.
  if (GateOver(state_, *lease, now) < quota::Gate::kParked) return;
  if (!ReserveRoom(*lease)) {
    LeaveAlone(lease, now);
    return;
  }
  lease->copy.Edit({}).backed_slabs = BackedSlabs(state_, *lease);
  if (lease->copy->backed_slabs == 0) {
    state_.host_books.Edit({}).MarkUntrue(lease->id);
    Recorder(state_).Touch(lease->id);
    if (!lease->sharing->shared)
      lease->copy.Edit({}).backed_epoch =
          state_.SessionAt(lease->request.session).gate->epoch();
  }
  size_t end = lease->copy->backed_slabs;
  uint64_t sum = 0;
  while (end < lease->held->slabs.size() &&
         sum + lease->held->slabs[end].bytes <= bytes)
    sum += lease->held->slabs[end++].bytes;
  if (sum == 0) {
    state_.backing_at.Edit({}) = state_.backing_budget.Edit({}).AvailableAt(
        lease->held->slabs[end].bytes, now);
    return;
  }
  state_.backing_budget.Edit({}).Spend(sum, now);
  lease->copy.Edit({}).backing_slabs =
      static_cast<uint32_t>(end - lease->copy->backed_slabs);
  lease->copy.Edit({}).moved = absl::OkStatus();
  lease->copy.Edit({}).backing_started = now;
  CopyContents(lease, device::CopyDirection::kOut, lease->copy->backed_slabs,
               end, turn);
}

// The copy is true if no scope has come in since it began.
void HostDesk::OnBacked(Lease* lease, Turn& turn) {
  const uint32_t copied = std::exchange(lease->copy.Edit({}).backing_slabs, 0);
  const quota::Instant now = turn.now();
  if (state_.engine->Lease(lease->id)
          ->hard) {  // its gate was turned off meanwhile
    lease->copy.Edit({}).moved = absl::OkStatus();
    return GiveUpRoom(lease);
  }
  const bool holds = lease->sharing->sealed ||
                     state_.SessionAt(lease->request.session)
                         .gate->UnusedSince(lease->copy->backed_epoch);
  if (!lease->copy->moved.ok() || !holds) {
    lease->copy.Edit({}).backed_slabs = 0;
    if (!lease->copy->moved.ok()) LeaveAlone(lease, now);
    lease->copy.Edit({}).moved = absl::OkStatus();
    return;
  }
  lease->copy.Edit({}).backed_slabs += copied;
  state_.backing_at.Edit({}) = std::min(*state_.backing_at, now);
  if (lease->copy->backed_slabs < lease->held->slabs.size()) return;
  lease->copy.Edit({}).backed_slabs = 0;
  MarkTrue(*lease);
  PublishMove(state_, "backed", *lease, now - lease->copy->backing_started, "",
              turn);
}

}  // namespace gmb::broker
