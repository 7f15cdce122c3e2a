// Parked memory is copied to the host pool ahead of need, so that taking it
// later costs no copy: at a bounded rate, one lease at a time, and never beside
// a waiting request.
#include "broker/machine/backer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "broker/machine/backed.h"
#include "broker/machine/reclaim_rows.h"
#include "quota/backing.h"

namespace gmb::broker {
namespace {

constexpr quota::Nanoseconds kBackingLook = std::chrono::milliseconds(100);
// If nothing was found. Looks for who lacks memory share their budget with this.
constexpr quota::Nanoseconds kLookALease = std::chrono::milliseconds(1);
// Between two slices of the leases that are looked at.
constexpr quota::Nanoseconds kSlicePause = std::chrono::milliseconds(10);
// Of a slice.
constexpr size_t kMostFound = 16;
// Copied at a time, but for a larger slab: a request may wait for so much.
constexpr uint64_t kStepBytes = uint64_t{128} << 20;

// Whether copies are made for others, or soon will be. A client that does not
// answer needs no bus.
bool BusIsNeeded(const State& state) {
  if (state.engine->waiting() > 0 || !state.pausing->empty()) return true;
  return std::any_of(
      state.moving->begin(), state.moving->end(),
      [&](const auto& move) { return !state.LeaseAt(move.second).overdue(); });
}

// As far as the lease alone says. The rest takes a look at its users.
bool MayBack(const State& state, const Lease& lease) {
  const bool sealed = lease.sharing->sealed;
  if (!sealed && state.options.backing.sealed_alone()) return false;
  if (sealed && state.host_books->TrueCopy(lease.id) != nullptr) return false;
  const auto& mappings = lease.move->mappings;
  const bool away = std::any_of(mappings.begin(), mappings.end(),
                                [](const Mapping& m) { return m.unmapped; });
  const auto quota = state.engine->Lease(lease.id);
  return !away && quota.has_value() && !quota->hard && lease.copy->copies == 0;
}

quota::Snapshot SnapshotOf(const State& state, const ReclaimRows& rows) {
  return {.leases = rows.leases,
          .tenants = rows.tenants,
          .host_free_bytes = state.host_books->unreserved_bytes()};
}

}  // namespace

void Backer::BackAhead(quota::Instant now, Turn& turn) {
  if (state_.options.backing.rate() == 0) return;
  const bool in_hand = state_.backing_pass->in_hand.has_value();
  if (!in_hand && now < *state_.backing_at) return;
  const bool needed = BusIsNeeded(state_);
  const bool copies = LookAfterTheOne(needed, now, turn);
  if (now < *state_.backing_at) return;
  state_.backing_at.Edit({}) = now + kBackingLook;
  const uint64_t available = state_.backing_budget.Edit({}).AvailableBytes(now);
  if (needed || copies || available == 0) return;
  if (BackNext(available, now, turn)) return;
  LookForMore(available, now);
  (void)BackNext(available, now, turn);
}

// That is in hand. Whether it is being copied.
bool Backer::LookAfterTheOne(bool needed, quota::Instant now, Turn& turn) {
  BackingPass& pass = state_.backing_pass.Edit({});
  if (!pass.in_hand.has_value()) return false;
  const auto found = state_.leases->find(*pass.in_hand);
  Lease* lease = found == state_.leases->end() ? nullptr : found->second.get();
  const bool copies = lease != nullptr && lease->copy->backing_slabs > 0 &&
                      lease->copy->copies > 0;
  if (copies) {
    if (needed && lease->copy->moved.ok())
      host_.Fail(lease, absl::CancelledError("somebody needs the bus"), turn);
    return true;
  }
  // The rest of it follows.
  if (lease != nullptr && lease->copy->backed_slabs > 0)
    pass.next.push_back(*pass.in_hand);
  pass.in_hand.reset();
  state_.backing_at.Edit({}) = std::min(*state_.backing_at, now);
  return false;
}

// Of what was found. Whether one is in hand, or waits for the budget.
bool Backer::BackNext(uint64_t available, quota::Instant now, Turn& turn) {
  BackingPass& pass = state_.backing_pass.Edit({});
  while (!pass.next.empty()) {
    const quota::LeaseId id = pass.next.back();
    pass.next.pop_back();
    const auto found = state_.leases->find(id);
    const bool may = found != state_.leases->end() &&
                     found->second->reclaim->listed &&
                     MayBack(state_, *found->second);
    if (!may) continue;
    const ReclaimRows rows = RowsOf(state_, {id}, now);
    const auto step = quota::NextToBack(SnapshotOf(state_, rows), now,
                                        /*anybody_waits=*/false, available,
                                        state_.options.backing);
    if (!step.has_value()) continue;
    Lease* lease = found->second.get();
    // Whole slabs: the first of them is copied however large it is.
    const uint64_t slab_bytes =
        lease->held->slabs[BackedSlabs(state_, *lease)].bytes;
    quota::BackingBudget& budget = state_.backing_budget.Edit({});
    const quota::Instant at = budget.AvailableAt(slab_bytes, now);
    if (at == quota::Instant::Max()) continue;
    if (at > now) {
      pass.next.push_back(id);
      state_.backing_at.Edit({}) = at;
      return true;
    }
    const uint64_t copied = host_.StartBacking(
        lease, std::min(available, std::max(kStepBytes, slab_bytes)), now,
        turn);
    if (copied == 0) continue;
    budget.Spend(copied, now);
    pass.in_hand = id;
    return true;
  }
  return false;
}

// One slice more.
void Backer::LookForMore(uint64_t available, quota::Instant now) {
  BackingPass& pass = state_.backing_pass.Edit({});
  std::vector<quota::LeaseId> some;
  const bool all = LookOn(now, &some);
  ReclaimRows rows = RowsOf(state_, some, now);
  while (pass.next.size() < kMostFound) {
    const auto step = quota::NextToBack(SnapshotOf(state_, rows), now,
                                        /*anybody_waits=*/false, available,
                                        state_.options.backing);
    if (!step.has_value()) break;
    pass.next.push_back(step->lease);
    std::erase_if(rows.leases, [&](const quota::LeaseRow& row) {
      return row.lease == step->lease;
    });
  }
  std::reverse(pass.next.begin(), pass.next.end());
  pass.found |= !pass.next.empty();
  if (!all) {
    state_.backing_at.Edit({}) = now + kSlicePause;
    return;
  }
  if (!pass.found) {
    state_.backing_at.Edit({}) =
        now +
        std::max(kBackingLook, static_cast<int64_t>(pass.seen) * kLookALease);
  }
  std::vector<quota::LeaseId> next = std::move(pass.next);
  pass = {};
  pass.next = std::move(next);
}

// From where the last slice ended. Whether it has come to the end.
bool Backer::LookOn(quota::Instant now, std::vector<quota::LeaseId>* some) {
  BackingPass& pass = state_.backing_pass.Edit({});
  for (auto pool = state_.pools->lower_bound(pass.pool);
       pool != state_.pools->end(); ++pool) {
    if (pool->first != pass.pool) {
      pass.pool = pool->first;
      pass.tenant = {};
      pass.lease = {};
    }
    if (!BacksAhead(state_, *pool->second, now)) continue;
    const ReclaimIndex::Listed& listed = state_.reclaim->ListedIn(pool->first);
    for (auto its = listed.lower_bound(pass.tenant); its != listed.end();
         ++its) {
      if (its->first != pass.tenant) pass.lease = {};
      pass.tenant = its->first;
      for (auto id = its->second.lower_bound(pass.lease);
           id != its->second.end(); ++id) {
        pass.lease = *id;
        if (!state_.look_budget->any_left()) return false;
        const Lease& lease = state_.LeaseAt(*id);
        const bool may = MayBack(state_, lease);
        const size_t looks =
            may ? std::max<size_t>(lease.move->mappings.size(), 1) : 1;
        lookout_.Spend(looks);
        pass.seen += looks;
        if (may) some->push_back(*id);
      }
      pass.lease = quota::LeaseId{UINT64_MAX};
    }
  }
  return true;
}

}  // namespace gmb::broker
