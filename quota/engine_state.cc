// Reactions to requests and ends: each Acquire is granted, denied or made to
// wait, and each released lease is given back to its pools.
#include "quota/engine_state.h"

#include <algorithm>
#include <utility>

#include "quota/claim.h"
#include "quota/in_part.h"
#include "quota/must_find.h"

namespace gmb::quota {
namespace {

// Of requests whose time is over, with one event: the next goes on.
constexpr int kMostExpiries = 64;

// Rounded up to the granularity. `bytes` is at most kMaxPoolBytes.
uint64_t RoundUp(uint64_t bytes, uint64_t granularity_bytes) {
  const uint64_t rest = bytes % granularity_bytes;
  return rest == 0 ? bytes : bytes + (granularity_bytes - rest);
}

// Of an Acquire or a Request.
template <typename Asked>
Denied Refuse(const Asked& request, const Refusal& refusal,
              Nanoseconds retry_after = {}) {
  return {.request = request.request,
          .session = request.session,
          .reason = refusal.reason,
          .deficit_bytes = refusal.deficit_bytes,
          .claimed = refusal.claimed,
          .retry_after = retry_after};
}

// Of one that soft bytes can cover only now: its windows begin anew.
void BeginClaimAnew(const EngineOptions& options, Instant now, Waiter* waiter) {
  // One whose first hold is still to come learns then how long it lasts.
  if (!waiter->window || waiter->window->first == Nanoseconds(0)) return;
  const ClaimPhase phase = PhaseAt(*waiter->window, now);
  if (phase.holds && phase.until - now >= options.covered_hold) return;
  // One that holds keeps what it has collected.
  waiter->window = phase.holds
                       ? ClaimWindow{.from = now, .first = options.covered_hold}
                       : ClaimWindow{.from = now + std::max(options.pass_window,
                                                            Nanoseconds(1))};
}

}  // namespace

// One after the other: the bytes that one kept back may serve the next, which
// would have them if it asked again at once.
void Engine::State::Expire(std::vector<PoolId> touched, Effects& effects) {
  if (!touched.empty()) SettleAll(std::move(touched), effects);
  for (int i = 0; i < kMostExpiries; ++i) {
    const std::optional<RequestId> expired = waiters.Expired(now);
    if (!expired) return;
    if (waiters.BeginToLinger(*expired, now)) continue;
    const Request request = Dequeue(*expired).asked;
    effects.push_back(DenialOf(request));
    std::vector<PoolId> freed;
    request.AddPoolsTo(freed);
    SettleAll(std::move(freed), effects);
  }
}

void Engine::State::On(const Acquire& event, Effects& effects) {
  if (waiters.Contains(event.request)) return;
  PoolState* pool = pools.Find(event.pool);
  const auto tenant = tenants.find(event.tenant);
  std::optional<Refusal> refusal;
  if (event.bytes == 0 || event.handles == 0) {
    refusal = {.reason = Reason::kBadRequest};
  } else if (tenant == tenants.end()) {
    refusal = {.reason = Reason::kNoSuchTenant};
  } else if (pool == nullptr) {
    refusal = {.reason = Reason::kNoSuchPool};
  } else if (pool->draining) {
    refusal = {.reason = Reason::kDraining};
  }
  if (refusal) {
    effects.push_back(Refuse(event, *refusal));
    return;
  }

  const Account* account = pool->ledger.Find(event.tenant);
  Ask ask{.bytes = event.bytes, .hard = event.hard, .restore = false};
  if (event.bytes <= kMaxPoolBytes) {
    ask.bytes = RoundUp(event.bytes, pool->ledger.granularity_bytes());
  }
  refusal = account == nullptr ? Refusal{Reason::kTenantLimit, ask.bytes}
                               : CheckEver(pool->ledger, *account, ask);
  if (!refusal && handles.NeverFit(tenant->second.handles, event.handles)) {
    refusal = {.reason = Reason::kTooManyHandles};
  }
  if (refusal) {
    effects.push_back(Refuse(event, *refusal));
    return;
  }
  if (!handles.Fit(tenant->second.handles, event.handles)) {
    effects.push_back(Refuse(event, {.reason = Reason::kTooManyHandles},
                             options.pass_window));
    return;
  }
  Decide({.request = event.request,
          .session = event.session,
          .tenant = event.tenant,
          .deadline = event.deadline,
          .take_by = event.deadline,
          .handles = event.handles,
          .parts = {{.pool = event.pool, .ask = ask}},
          .leases = {},
          .sessions = {}},
         effects);
}

void Engine::State::Decide(Request request, Effects& effects) {
  std::vector<PoolId> touched;
  request.AddPoolsTo(touched);
  const std::optional<Refusal> refusal = Blocked(request);
  if (!refusal) {
    Carry(request, effects);
  } else if (request.deadline <= now) {
    effects.push_back(Refuse(request, *refusal, options.pass_window));
    return;
  } else if (pausing.contains(request.session) &&
             !pools.IsWithinGuarantee(request)) {
    Denied denied = Refuse(request, *refusal, options.pass_window);
    denied.pausing = true;
    effects.push_back(denied);
    return;
  } else {
    uint64_t ahead = 0;
    for (const PoolId id : touched) {
      ahead = std::max(ahead, pools.Find(id)->queue.waiting().requests);
    }
    effects.push_back(Waiting{.request = request.request, .ahead = ahead});
    Enqueue({.asked = std::move(request),
             .place = waiters.NextPlace(),
             .since = now});
  }
  SettleAll(std::move(touched), effects);
}

std::optional<Refusal> Engine::State::Blocked(const Request& request,
                                              uint64_t place) const {
  std::optional<Refusal> blocked;
  for (const Request::Part& part : request.parts) {
    const PoolState& pool = *pools.Find(part.pool);
    const auto refusal =
        CheckNow(pool, *pool.ledger.Find(request.tenant), part.ask,
                 heads().ClaimsIn(part.pool, pool), place);
    if (!refusal) continue;
    // Of several pools the one that lacks most speaks, the first of equals, and
    // one that has the bytes only if all have.
    const auto speaks = [](const Refusal& r) {
      return std::make_pair(!r.claimed, r.deficit_bytes);
    };
    if (!blocked || speaks(*refusal) > speaks(*blocked)) blocked = refusal;
  }
  return blocked;
}

Denied Engine::State::DenialOf(const Request& request, uint64_t place) const {
  // Without a reason of its own it was kept back by another that ends now.
  const Refusal refusal =
      Blocked(request, place)
          .value_or(Refusal{.reason = Reason::kPoolExhausted, .claimed = true});
  return Refuse(request, refusal, options.pass_window);
}

void Engine::State::On(const Cancel& event, Effects& effects) {
  if (!waiters.Contains(event.request)) return;
  std::vector<PoolId> touched;
  waiters.Of(event.request).asked.AddPoolsTo(touched);
  DenyWaiting(event.request, {.reason = Reason::kCancelled}, effects);
  SettleAll(std::move(touched), effects);
}

void Engine::State::On(const Softened& event, Effects& effects) {
  if (!waiters.Contains(event.request)) return;
  // A Restore is soft in all its pools; an Acquire has one.
  if (!waiters.Of(event.request).asked.parts.front().ask.hard) return;
  // Nobody is served while it stands in no queue.
  Waiter waiter = Dequeue(event.request);
  Request::Part& part = waiter.asked.parts.front();
  const bool was_covered = pools.IsCovered(waiter.asked);
  part.ask.hard = false;
  if (!was_covered && pools.IsCovered(waiter.asked))
    BeginClaimAnew(options, now, &waiter);
  const PoolId pool = part.pool;
  Enqueue(std::move(waiter));
  Settle(pool, *pools.Find(pool), effects);
}

void Engine::State::On(const Released& event, Effects& effects) {
  EndLease(event.lease, effects);
}

void Engine::State::On(const GrantFailed& event, Effects& effects) {
  EndLease(event.lease, effects);
}

void Engine::State::On(const SessionClosed& event, Effects& effects) {
  pausing.erase(event.session);
  std::vector<PoolId> touched;
  for (const RequestId request : waiters.OfSession(event.session)) {
    waiters.Of(request).asked.AddPoolsTo(touched);
    DenyWaiting(request, {.reason = Reason::kCancelled}, effects);
  }
  SettleAll(std::move(touched), effects);
}

void Engine::State::On(const Tick&, Effects&) {}  // Handle expires what is due

void Engine::State::Carry(const Request& request, Effects& effects) {
  if (request.IsRestore()) {
    BringBack(request, effects);
  } else {
    Grant(request, effects);
  }
}

void Engine::State::Grant(const Request& request, Effects& effects) {
  const Request::Part& part = request.parts.front();
  const LeaseId lease = leases.Grant({.session = request.session,
                                      .tenant = request.tenant,
                                      .pool = part.pool,
                                      .bytes = part.ask.bytes,
                                      .handles = request.handles,
                                      .hard = part.ask.hard},
                                     pools);
  handles.Take(MustFind(tenants, request.tenant, "tenant").handles,
               request.handles);
  effects.push_back(Granted{.request = request.request,
                            .lease = lease,
                            .session = request.session,
                            .tenant = request.tenant,
                            .pool = part.pool,
                            .bytes = part.ask.bytes,
                            .handles = request.handles});
}

void Engine::State::EndLease(LeaseId id, Effects& effects) {
  const std::optional<LeaseView> lease = leases.End(id, pools);
  if (!lease) return;
  handles.GiveBack(MustFind(tenants, lease->tenant, "tenant").handles,
                   lease->handles);
  ForgetBackInPart(id, lease->bytes, /*taken=*/false, waiters, pools);
  const std::optional<RequestId> restore = waiters.RestoreOf(id);
  if (restore) LeaveOut(id, *restore, effects);
  Settle(lease->pool, *pools.Find(lease->pool), effects);
}

void Engine::State::Enqueue(Waiter&& waiter) {
  const Waiter& added = waiters.Add(std::move(waiter), now);
  const Request& request = added.asked;
  ++MustFind(tenants, request.tenant, "tenant").waiting;
  MarkBackInPart(request, pools, /*waits=*/true);
  for (const Request::Part& part : request.parts) {
    PoolState& pool = *pools.Find(part.pool);
    pool.queue.Add(request.tenant, added.place, request.request, part.ask,
                   StandingOf(*pool.ledger.Find(request.tenant)));
    if (request.parts.size() > 1)
      pool.linked.emplace(added.place, request.request);
    if (added.window) {
      pool.queue.SetPassableUntil(request.tenant, added.place,
                                  added.window->from);
    }
  }
}

Waiter Engine::State::Dequeue(RequestId request) {
  Waiter waiter = waiters.Remove(request);
  const Request& asked = waiter.asked;
  --MustFind(tenants, asked.tenant, "tenant").waiting;
  MarkBackInPart(asked, pools, /*waits=*/false);
  for (const Request::Part& part : asked.parts) {
    PoolState& pool = *pools.Find(part.pool);
    pool.queue.Remove(asked.tenant, waiter.place, part.ask.bytes,
                      StandingOf(*pool.ledger.Find(asked.tenant)));
    pool.linked.erase(waiter.place);
  }
  return waiter;
}

void Engine::State::DenyWaiting(RequestId request, const Refusal& refusal,
                                Effects& effects) {
  effects.push_back(Refuse(Dequeue(request).asked, refusal));
}

}  // namespace gmb::quota
