// The reference model's claims: what those who wait longest hold back, and
// when.
#include <algorithm>

#include "tests/quota/reference_model.h"

namespace gmb::quota {

void ReferenceModel::LearnFirstHolds() {
  for (ModelWaiter& waiter : waiters_) {
    const bool begins = waiter.head_since.has_value() &&
                        waiter.first_hold == Nanoseconds(0) &&
                        *waiter.head_since + options_.pass_window <= now_;
    if (!begins) continue;
    const auto& parts = waiter.wanted.bytes;
    const bool covered = std::all_of(
        parts.begin(), parts.end(),
        [&](const auto& part) { return IsCovered(waiter.wanted, part.first); });
    waiter.first_hold = covered ? options_.covered_hold : options_.pass_window;
  }
}

// With all that soft leases above guarantees, its tenant's own, and missing
// bytes that come back could give.
bool ReferenceModel::IsCovered(const Wanted& request, PoolId pool) const {
  const uint64_t bytes = request.bytes.at(pool);
  const auto returning = static_cast<int64_t>(pools_.at(pool).returning);
  int64_t could = Free(pool) + returning;
  for (const auto& [tenant, share] : pools_.at(pool).shares) {
    const uint64_t resident = Resident(pool, tenant);
    const uint64_t soft = resident - Hard(pool, tenant);
    const uint64_t above =
        resident > share.effective ? resident - share.effective : 0;
    could += static_cast<int64_t>(
        tenant == request.tenant ? soft : std::min(soft, above));
  }
  if (could < static_cast<int64_t>(bytes)) return false;
  if (!request.hard) return true;
  const int64_t before = Committed(pool);
  const int64_t added = Committed(pool, request.tenant, bytes) - before;
  return added <= std::max<int64_t>(Usable(pool) - before, 0) + returning;
}

bool ReferenceModel::HoldsNow(const ModelWaiter& waiter) const {
  if (waiter.first_hold == Nanoseconds(0)) return false;
  const Nanoseconds age = now_ - (*waiter.head_since + options_.pass_window);
  // Pairs of windows, held and open; each pair after the first is twice as long
  // as all before it.
  Nanoseconds begun(0), length = waiter.first_hold;
  while (age >= begun + 2 * length) {
    begun += 2 * length;
    length = begun;
  }
  return age >= Nanoseconds(0) && age < begun + length;
}

Instant ReferenceModel::NextTurn(const ModelWaiter& waiter) const {
  if (!waiter.head_since) return Instant::Max();
  Instant turn = *waiter.head_since + options_.pass_window;
  if (waiter.first_hold == Nanoseconds(0)) return turn;
  Nanoseconds begun(0), length = waiter.first_hold;
  while (true) {
    for (const Nanoseconds age : {begun + length, begun + 2 * length}) {
      if (turn + age > now_) return turn + age;
    }
    begun += 2 * length;
    length = begun;
  }
}

std::optional<Instant> ReferenceModel::NextDeadline() const {
  std::optional<Instant> next;
  for (const ModelWaiter& waiter : waiters_) {
    const Instant soon = std::min(waiter.wanted.deadline, NextTurn(waiter));
    next = std::min(next.value_or(soon), soon);
  }
  return next;
}

size_t ReferenceModel::ArrivalOf(const Wanted& request) const {
  for (size_t i = 0; i < waiters_.size(); ++i) {
    if (waiters_[i].wanted.request == request.request) return i;
  }
  return waiters_.size();  // not among those that wait: it is the youngest
}

ReferenceModel::TurnRank ReferenceModel::RankOf(PoolId pool,
                                                TenantId tenant) const {
  size_t oldest = waiters_.size();
  for (size_t i = waiters_.size(); i-- > 0;) {
    const Wanted& other = waiters_[i].wanted;
    if (other.tenant == tenant && other.bytes.contains(pool)) oldest = i;
  }
  return {Priority(pool, tenant), oldest};
}

std::vector<const ReferenceModel::ModelWaiter*> ReferenceModel::Heads(
    PoolId pool, bool unpassable) const {
  std::vector<const ModelWaiter*> fronts;
  for (const ModelWaiter& waiter : waiters_) {
    const bool over = waiter.head_since.has_value() &&
                      *waiter.head_since + options_.pass_window <= now_;
    if (waiter.wanted.bytes.contains(pool) && (over || !unpassable) &&
        IsFrontOfItsTenant(waiter.wanted, pool)) {
      fronts.push_back(&waiter);
    }
  }
  std::sort(fronts.begin(), fronts.end(), [&](const auto* a, const auto* b) {
    return RankOf(pool, a->wanted.tenant) < RankOf(pool, b->wanted.tenant);
  });
  const int64_t free =
      std::max<int64_t>(Free(pool), 0) - static_cast<int64_t>(KeptWithin(pool));
  std::vector<const ModelWaiter*> heads;
  for (const ModelWaiter* waiter : fronts) {
    const bool lacks_bytes =
        static_cast<int64_t>(waiter->wanted.bytes.at(pool)) > free;
    const bool lacks_sum = !lacks_bytes && Lacking(waiter->wanted, pool) > 0;
    if (lacks_bytes || (lacks_sum && heads.empty())) heads.push_back(waiter);
    if (lacks_bytes) break;
  }
  return heads;
}

std::vector<const ReferenceModel::ModelWaiter*> ReferenceModel::Claiming(
    PoolId pool) const {
  std::set<const ModelWaiter*> claiming;
  for (const auto& [other, unused] : pools_) {
    for (const ModelWaiter* head : Heads(other, true)) {
      const bool claims = head->wanted.bytes.contains(pool) &&
                          HoldsNow(*head) &&
                          HeldBack(head->wanted, pool) == 0 &&
                          !WithinGuarantee(head->wanted, pool);
      if (claims) claiming.insert(head);
    }
  }
  return {claiming.begin(), claiming.end()};
}

uint64_t ReferenceModel::KeptWithin(PoolId pool) const {
  uint64_t kept = 0;
  std::map<TenantId, uint64_t> used;
  for (const Wanted& request : Order(pool)) {
    const uint64_t bytes = request.bytes.at(pool);
    const uint64_t effective =
        pools_.at(pool).shares.at(request.tenant).effective;
    uint64_t& own = used[request.tenant];
    if (Resident(pool, request.tenant) + own + bytes > effective) continue;
    own += bytes;
    kept += bytes;
    if (static_cast<int64_t>(kept) > Free(pool)) break;
  }
  return kept;
}

int64_t ReferenceModel::LackingBeside(const Wanted& request, PoolId pool,
                                      bool older_only) const {
  const auto bytes = static_cast<int64_t>(request.bytes.at(pool));
  const int64_t free = Free(pool) - static_cast<int64_t>(KeptWithin(pool));
  const int64_t sum = Committed(pool);
  const auto beyond = [&](const Wanted& asks) {
    if (!asks.hard) return int64_t{0};
    return Committed(pool, asks.tenant, asks.bytes.at(pool)) - sum;
  };
  int64_t lacking = bytes - free;
  const size_t arrival = ArrivalOf(request);
  for (const ModelWaiter* waiter : Claiming(pool)) {
    const Wanted& owner = waiter->wanted;
    const size_t owners = ArrivalOf(owner);
    if (owners == arrival || (older_only && owners > arrival)) continue;
    const bool before =
        owner.tenant == request.tenant
            ? owners < arrival
            : RankOf(pool, owner.tenant) < RankOf(pool, request.tenant);
    if (!before) continue;
    const auto claimed = static_cast<int64_t>(owner.bytes.at(pool));
    lacking = std::max(lacking, claimed + bytes - free);
    if (beyond(owner) > 0 && beyond(request) > 0) {
      lacking = std::max(
          lacking, beyond(owner) + beyond(request) - (Usable(pool) - sum));
    }
  }
  return lacking;
}

void ReferenceModel::On(const Softened& event) {
  if (!IsWaiting(event.request)) return;
  ModelWaiter& waiter = WaiterOf(event.request);
  const auto covered = [&] {
    const auto& parts = waiter.wanted.bytes;
    return std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
      return IsCovered(waiter.wanted, part.first);
    });
  };
  const bool was_covered = covered();
  waiter.wanted.hard = false;
  if (was_covered || !covered() || waiter.first_hold == Nanoseconds(0)) return;
  const Nanoseconds rest = NextTurn(waiter) - now_;
  if (HoldsNow(waiter)) {
    if (rest >= options_.covered_hold) return;
    waiter.head_since = now_ + -options_.pass_window;
    waiter.first_hold = options_.covered_hold;
    return;
  }
  waiter.head_since = now_;
  waiter.first_hold = Nanoseconds(0);
}

}  // namespace gmb::quota
