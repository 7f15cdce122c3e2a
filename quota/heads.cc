// The claim of a queue's head, and who is next for reclaim because of it.
#include "quota/heads.h"

#include <algorithm>

namespace gmb::quota {
namespace {

// Of those that wait to borrow and are not what is looked for, so many are
// passed over.
constexpr int kMostFronts = 16;

// The part of the sum that missing and unreturned bytes have broken: those who
// stayed within their rights do not pay for it. Leases that became hard may have
// broken more of it; bytes that others have borrowed can serve instead of those.
int64_t LostBytes(const Ledger& ledger) {
  const auto lost_bytes = static_cast<int64_t>(
      ledger.missing().bytes + ledger.totals().unreturned_claim_bytes);
  return std::clamp<int64_t>(-ledger.SlackBytes(), 0, lost_bytes);
}

}  // namespace

absl::InlinedVector<RequestId, 2> Heads::In(PoolId id, const PoolState& pool,
                                            uint64_t kept_bytes,
                                            Instant passable_until) const {
  absl::InlinedVector<RequestId, 2> heads;
  int looked_at = 0;
  pool.queue.ForEachFront(
      [&](RequestId request) {
        const Request& asked = waiters_.Of(request).asked;
        const Lack lack = LackOf(pool, *pool.ledger.Find(asked.tenant),
                                 asked.PartIn(id)->ask, kept_bytes);
        // One that has its bytes here is no head here.
        if (lack == Lack::kBytes || (lack == Lack::kSum && heads.empty())) {
          heads.push_back(request);
        }
        return lack != Lack::kBytes && ++looked_at < kMostFronts;
      },
      passable_until);
  return heads;
}

Claims Heads::ClaimsIn(PoolId id, const PoolState& pool) const {
  Claims claims;
  if (pool.queue.waiting().requests == 0) return claims;
  claims.guaranteed_bytes = KeptForGuarantees(pool);
  for (const RequestId head : In(id, pool, claims.guaranteed_bytes, now_)) {
    AddClaim(id, pool, head, claims);
  }
  if (pool.linked.empty()) return claims;
  // A request that claims in one of its pools does so in all of them: or each
  // would be taken by others while it collects in the next.
  pools_.ForEach([&](PoolId other_id, const PoolState& other) {
    if (other_id == id || other.linked.empty()) return;
    for (const RequestId head :
         In(other_id, other, KeptForGuarantees(other), now_)) {
      AddClaim(id, pool, head, claims);
    }
  });
  // The pools have no order.
  std::sort(claims.held.begin(), claims.held.end(),
            [](const Claim& a, const Claim& b) { return a.place < b.place; });
  return claims;
}

void Heads::AddClaim(PoolId id, const PoolState& pool, RequestId request,
                     Claims& claims) const {
  const Waiter& waiter = waiters_.Of(request);
  const Request::Part* part = waiter.asked.PartIn(id);
  const bool known =
      std::any_of(claims.held.begin(), claims.held.end(),
                  [&](const Claim& claim) { return claim.request == request; });
  if (part == nullptr || known) return;
  if (!PhaseAt(*waiter.window, now_).holds) return;
  const Account& account = *pool.ledger.Find(waiter.asked.tenant);
  const Ask& ask = part->ask;
  const uint64_t limit_left_bytes =
      ask.restore ? account.RestoreLeftBytes() : account.LimitLeftBytes();
  if (ask.bytes > limit_left_bytes) return;  // it waits for its own tenant
  if (ask.bytes <= account.GuaranteeLeftBytes()) return;  // kept for it anyway
  claims.held.push_back(
      {.request = request,
       .tenant = waiter.asked.tenant,
       .place = waiter.place,
       .bytes = ask.bytes,
       .slack_bytes =
           ask.hard ? ask.bytes - std::min(ask.bytes, account.HardRoomBytes())
                    : 0});
}

Instant Heads::CollectsFrom(const Waiter& waiter, const Claims& claims) const {
  if (!waiter.window) return Instant::Max();
  const ClaimPhase phase = PhaseAt(*waiter.window, now_);
  if (!phase.holds) return phase.until;
  const bool in_force = std::any_of(
      claims.held.begin(), claims.held.end(),
      [&](const Claim& claim) { return claim.place == waiter.place; });
  return in_force ? phase.since : Instant::Max();
}

std::optional<Shortage> Heads::NextShortage(PoolId id, const PoolState& pool,
                                            uint64_t incoming_bytes) const {
  if (pool.queue.waiting().requests == 0) return std::nullopt;
  const std::optional<Shortage> found =
      ShortageWithin(id, pool, incoming_bytes);
  const bool lends =
      pool.ledger.SlackBytes() >= 0 && !pool.ledger.IsShrinking();
  if (found || !lends) return found;
  return BorrowersShortage(id, pool, incoming_bytes);
}

std::optional<Shortage> Heads::ShortageWithin(PoolId id, const PoolState& pool,
                                              uint64_t incoming_bytes) const {
  int64_t have_bytes = pool.ledger.FreeBytes() + LostBytes(pool.ledger) +
                       static_cast<int64_t>(incoming_bytes);
  std::optional<Shortage> found;
  pool.queue.ForEachWithinGuarantee(
      [&](TenantId tenant, RequestId request, uint64_t bytes) {
        have_bytes -= static_cast<int64_t>(bytes);
        if (have_bytes >= 0) return true;
        const Request& asked = waiters_.Of(request).asked;
        found = Shortage{.request = request,
                         .session = asked.session,
                         .tenant = tenant,
                         .pool = id,
                         .bytes = bytes,
                         .lacking_bytes = static_cast<uint64_t>(-have_bytes),
                         .within_guarantee = true,
                         .deadline = asked.take_by};
        return false;
      });
  return found;
}

std::optional<Shortage> Heads::BorrowersShortage(
    PoolId id, const PoolState& pool, uint64_t incoming_bytes) const {
  const Claims claims = ClaimsIn(id, pool);
  std::optional<Shortage> found;
  const auto guaranteed_bytes = static_cast<int64_t>(claims.guaranteed_bytes);
  if (guaranteed_bytes > 0 && guaranteed_bytes > pool.ledger.FreeBytes()) {
    return found;  // what is under way for these comes first
  }
  int looked_at = 0;
  pool.queue.ForEachFront([&](RequestId request) {
    const Waiter& waiter = waiters_.Of(request);
    const Request& asked = waiter.asked;
    Ask ask = asked.PartIn(id)->ask;
    ask.hard =
        false;  // reclaim gives free bytes, and those alone are asked for
    const int64_t lacking_bytes = LackingBesideClaims(
        pool, *pool.ledger.Find(asked.tenant), ask, claims, waiter.place);
    if (lacking_bytes <= 0) return ++looked_at < kMostFronts;
    // The bytes under way serve it first, and then the next.
    if (lacking_bytes <= static_cast<int64_t>(incoming_bytes)) {
      found.reset();
      return false;
    }
    const ClaimPhase phase =
        waiter.window ? PhaseAt(*waiter.window, now_) : ClaimPhase{};
    const bool lets_pass =
        waiter.window && now_ >= waiter.window->from && !phase.holds;
    if (lets_pass && found) return ++looked_at < kMostFronts;
    found = Shortage{
        .request = request,
        .session = asked.session,
        .tenant = asked.tenant,
        .pool = id,
        .bytes = ask.bytes,
        .lacking_bytes = static_cast<uint64_t>(lacking_bytes) - incoming_bytes,
        .within_guarantee = false,
        .collects_from = CollectsFrom(waiter, claims),
        .deadline = asked.deadline};
    return lets_pass && ++looked_at < kMostFronts;
  });
  return found;
}

}  // namespace gmb::quota
