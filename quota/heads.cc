// The claim of a queue's head: when it begins, holds and lets others pass, and
// who is next for reclaim because of it.
#include <algorithm>

#include "quota/engine_state.h"
#include "quota/must_find.h"

namespace gmb::quota {
namespace {

// Of those that wait to borrow and are not what is looked for, so many are
// passed over.
constexpr int kMostFronts = 16;

}  // namespace

const Engine::State::Part* Engine::State::Request::PartIn(PoolId pool) const {
  const auto part =
      std::find_if(parts.begin(), parts.end(),
                   [pool](const Part& other) { return other.pool == pool; });
  return part == parts.end() ? nullptr : &*part;
}

absl::InlinedVector<RequestId, 2> Engine::State::HeadsOf(
    PoolId id, const PoolState& pool, uint64_t kept_bytes,
    Instant passable_until) const {
  absl::InlinedVector<RequestId, 2> heads;
  int looked_at = 0;
  pool.queue.ForEachFront(
      [&](RequestId request) {
        const Request& asked = MustFind(waiters, request, "request").asked;
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

void Engine::State::BeginClaims(PoolId id, const PoolState& pool,
                                uint64_t kept_bytes) {
  for (const RequestId head : HeadsOf(id, pool, kept_bytes, Instant::Max())) {
    BeginClaim(head);
  }
}

void Engine::State::BeginClaim(RequestId request) {
  WaiterRecord& record = MustFind(waiters, request, "request");
  if (record.window) return;
  record.window =
      ClaimWindow{.from = now + std::max(options.pass_window, Nanoseconds(1))};
  for (const Part& part : record.asked.parts) {
    FindPool(part.pool)->queue.SetPassableUntil(
        record.asked.tenant, record.place, record.window->from);
  }
  ScheduleTurn(record);
}

void Engine::State::ScheduleTurn(WaiterRecord& record) {
  record.turns_at = PhaseAt(*record.window, now).until;
  if (record.turns_at == Instant::Max()) return;
  turns.insert({.deadline = record.turns_at,
                .place = record.place,
                .request = record.asked.request});
}

void Engine::State::UnscheduleTurn(WaiterRecord& record) {
  turns.erase({.deadline = record.turns_at,
               .place = record.place,
               .request = record.asked.request});
}

std::vector<PoolId> Engine::State::TurnClaims() {
  std::vector<PoolId> touched;
  while (!turns.empty() && turns.begin()->deadline <= now) {
    WaiterRecord& record = MustFind(waiters, turns.begin()->request, "request");
    UnscheduleTurn(record);
    if (record.window->first == Nanoseconds(0)) {
      record.window->first =
          std::max(IsCoveredEverywhere(record.asked) ? options.covered_hold
                                                     : options.pass_window,
                   Nanoseconds(1));
    }
    ScheduleTurn(record);
    for (const Part& part : record.asked.parts) touched.push_back(part.pool);
  }
  return touched;
}

bool Engine::State::IsCoveredEverywhere(const Request& request) const {
  return std::all_of(
      request.parts.begin(), request.parts.end(), [&](const Part& part) {
        const PoolState& pool = *FindPool(part.pool);
        return IsCovered(pool, *pool.ledger.Find(request.tenant), part.ask);
      });
}

Claims Engine::State::ClaimsIn(PoolId id, const PoolState& pool) const {
  Claims claims;
  if (pool.queue.waiting().requests == 0) return claims;
  claims.guaranteed_bytes = KeptForGuarantees(pool);
  for (const RequestId head : HeadsOf(id, pool, claims.guaranteed_bytes, now)) {
    AddClaim(id, pool, head, claims);
  }
  if (pool.linked.empty()) return claims;
  // A request that claims in one of its pools does so in all of them: or each
  // would be taken by others while it collects in the next.
  for (const auto& [other_id, other] : pools) {
    if (other_id == id || other->linked.empty()) continue;
    for (const RequestId head :
         HeadsOf(other_id, *other, KeptForGuarantees(*other), now)) {
      AddClaim(id, pool, head, claims);
    }
  }
  // The map has no order of its own.
  std::sort(claims.held.begin(), claims.held.end(),
            [](const Claim& a, const Claim& b) { return a.place < b.place; });
  return claims;
}

void Engine::State::AddClaim(PoolId id, const PoolState& pool,
                             RequestId request, Claims& claims) const {
  const WaiterRecord& record = MustFind(waiters, request, "request");
  const Part* part = record.asked.PartIn(id);
  const bool known =
      std::any_of(claims.held.begin(), claims.held.end(),
                  [&](const Claim& claim) { return claim.request == request; });
  if (part == nullptr || known) return;
  if (!PhaseAt(*record.window, now).holds) return;
  const Account& account = *pool.ledger.Find(record.asked.tenant);
  const Ask& ask = part->ask;
  const uint64_t limit_left_bytes =
      ask.restore ? account.RestoreLeftBytes() : account.LimitLeftBytes();
  if (ask.bytes > limit_left_bytes) return;  // it waits for its own tenant
  if (ask.bytes <= account.GuaranteeLeftBytes()) return;  // kept for it anyway
  claims.held.push_back(
      {.request = request,
       .tenant = record.asked.tenant,
       .place = record.place,
       .bytes = ask.bytes,
       .slack_bytes =
           ask.hard ? ask.bytes - std::min(ask.bytes, account.HardRoomBytes())
                    : 0});
}

Instant Engine::State::CollectsFrom(const WaiterRecord& record,
                                    const Claims& claims) const {
  if (!record.window) return Instant::Max();
  const ClaimPhase phase = PhaseAt(*record.window, now);
  if (!phase.holds) return phase.until;
  const bool in_force = std::any_of(
      claims.held.begin(), claims.held.end(),
      [&](const Claim& claim) { return claim.place == record.place; });
  return in_force ? phase.since : Instant::Max();
}

std::optional<Shortage> Engine::State::BorrowersShortage(
    PoolId id, const PoolState& pool, uint64_t incoming_bytes) const {
  const Claims claims = ClaimsIn(id, pool);
  std::optional<Shortage> found;
  const auto guaranteed_bytes = static_cast<int64_t>(claims.guaranteed_bytes);
  if (guaranteed_bytes > 0 && guaranteed_bytes > pool.ledger.FreeBytes()) {
    return found;  // what is under way for these comes first
  }
  int looked_at = 0;
  pool.queue.ForEachFront([&](RequestId request) {
    const WaiterRecord& record = MustFind(waiters, request, "request");
    const Request& asked = record.asked;
    Ask ask = asked.PartIn(id)->ask;
    ask.hard =
        false;  // reclaim gives free bytes, and those alone are asked for
    const int64_t lacking_bytes = LackingBesideClaims(
        pool, *pool.ledger.Find(asked.tenant), ask, claims, record.place);
    if (lacking_bytes <= 0) return ++looked_at < kMostFronts;
    // The bytes under way serve it first, and then the next.
    if (lacking_bytes <= static_cast<int64_t>(incoming_bytes)) {
      found.reset();
      return false;
    }
    const ClaimPhase phase =
        record.window ? PhaseAt(*record.window, now) : ClaimPhase{};
    const bool lets_pass =
        record.window && now >= record.window->from && !phase.holds;
    if (lets_pass && found) return ++looked_at < kMostFronts;
    found = Shortage{
        .request = request,
        .session = asked.session,
        .tenant = asked.tenant,
        .pool = id,
        .bytes = ask.bytes,
        .lacking_bytes = static_cast<uint64_t>(lacking_bytes) - incoming_bytes,
        .within_guarantee = false,
        .collects_from = CollectsFrom(record, claims),
        .deadline = asked.deadline};
    return lets_pass && ++looked_at < kMostFronts;
  });
  return found;
}

}  // namespace gmb::quota
