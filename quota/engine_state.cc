// Reactions to requests and ends: each Acquire is granted, denied or made to
// wait, and each released lease is given back to its pools.
#include "quota/engine_state.h"

#include <algorithm>
#include <utility>

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

}  // namespace

// One after the other: the bytes that one kept back may serve the next, which
// would have them if it asked again at once.
void Engine::State::Expire(std::vector<PoolId> touched, Effects& effects) {
  SettleAll(std::move(touched), effects);
  for (int i = 0; i < kMostExpiries && !expiries.empty() &&
                  expiries.begin()->deadline <= now;
       ++i) {
    const Request request = Dequeue(expiries.begin()->request).asked;
    effects.push_back(Refuse(request, WhyWaited(request), options.pass_window));
    std::vector<PoolId> freed;
    for (const Part& part : request.parts) freed.push_back(part.pool);
    SettleAll(std::move(freed), effects);
  }
}

void Engine::State::On(const Acquire& event, Effects& effects) {
  if (waiters.contains(event.request)) return;
  PoolState* pool = FindPool(event.pool);
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
          .handles = event.handles,
          .parts = {{.pool = event.pool, .ask = ask}},
          .leases = {},
          .sessions = {}},
         effects);
}

void Engine::State::Decide(Request request, Effects& effects) {
  std::vector<PoolId> touched;
  for (const Part& part : request.parts) touched.push_back(part.pool);
  const std::optional<Refusal> refusal = Blocked(request);
  if (!refusal) {
    Carry(request, effects);
  } else if (request.deadline <= now) {
    effects.push_back(Refuse(request, *refusal, options.pass_window));
    return;
  } else if (pausing.contains(request.session) && !IsWithinGuarantee(request)) {
    Denied denied = Refuse(request, *refusal, options.pass_window);
    denied.pausing = true;
    effects.push_back(denied);
    return;
  } else {
    uint64_t ahead = 0;
    for (const PoolId id : touched) {
      ahead = std::max(ahead, FindPool(id)->queue.waiting().requests);
    }
    effects.push_back(Waiting{.request = request.request, .ahead = ahead});
    Enqueue({.asked = std::move(request), .place = ++last_place, .since = now});
  }
  SettleAll(std::move(touched), effects);
}

std::optional<Refusal> Engine::State::Blocked(const Request& request) const {
  std::optional<Refusal> blocked;
  for (const Part& part : request.parts) {
    const PoolState& pool = *FindPool(part.pool);
    const auto refusal = CheckNow(pool, *pool.ledger.Find(request.tenant),
                                  part.ask, ClaimsIn(part.pool, pool));
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

Refusal Engine::State::WhyWaited(const Request& request) const {
  // Without a reason of its own it was kept back by another that ends now.
  return Blocked(request).value_or(
      Refusal{.reason = Reason::kPoolExhausted, .claimed = true});
}

bool Engine::State::IsWithinGuarantee(const Request& request) const {
  return std::all_of(request.parts.begin(), request.parts.end(),
                     [&](const Part& part) {
                       const Account& account =
                           *FindPool(part.pool)->ledger.Find(request.tenant);
                       return part.ask.bytes <= account.GuaranteeLeftBytes();
                     });
}

void Engine::State::On(const Cancel& event, Effects& effects) {
  const auto it = waiters.find(event.request);
  if (it == waiters.end()) return;
  std::vector<PoolId> touched;
  for (const Part& part : it->second.asked.parts) touched.push_back(part.pool);
  DenyWaiting(event.request, {.reason = Reason::kCancelled}, effects);
  SettleAll(std::move(touched), effects);
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
  for (auto it = sessions.find(event.session); it != sessions.end();
       it = sessions.find(event.session)) {
    const RequestId request = it->second.begin()->request;
    for (const Part& part : MustFind(waiters, request, "request").asked.parts) {
      touched.push_back(part.pool);
    }
    DenyWaiting(request, {.reason = Reason::kCancelled}, effects);
  }
  SettleAll(std::move(touched), effects);
}

void Engine::State::On(const Tick&, Effects&) {}  // Handle expires what is due

PoolState* Engine::State::FindPool(PoolId id) {
  const auto it = pools.find(id);
  return it == pools.end() ? nullptr : it->second.get();
}

const PoolState* Engine::State::FindPool(PoolId id) const {
  const auto it = pools.find(id);
  return it == pools.end() ? nullptr : it->second.get();
}

void Engine::State::Carry(const Request& request, Effects& effects) {
  if (request.IsRestore()) {
    BringBack(request, effects);
  } else {
    Grant(request, effects);
  }
}

void Engine::State::Grant(const Request& request, Effects& effects) {
  const Part& part = request.parts.front();
  PoolState& pool = *FindPool(part.pool);
  const LeaseView view{.session = request.session,
                       .tenant = request.tenant,
                       .pool = part.pool,
                       .bytes = part.ask.bytes,
                       .handles = request.handles,
                       .hard = part.ask.hard};
  pool.ledger.AddLease(*pool.ledger.Find(request.tenant), view.bytes,
                       view.handles, PlaceOf(view));
  handles.Take(MustFind(tenants, request.tenant, "tenant").handles,
               request.handles);
  const LeaseId lease{++last_lease};
  leases.emplace(lease, view);
  effects.push_back(Granted{.request = request.request,
                            .lease = lease,
                            .session = request.session,
                            .tenant = request.tenant,
                            .pool = part.pool,
                            .bytes = view.bytes,
                            .handles = request.handles});
}

void Engine::State::EndLease(LeaseId id, Effects& effects) {
  const auto it = leases.find(id);
  if (it == leases.end()) return;
  const LeaseView lease = it->second;
  leases.erase(it);
  PoolState& pool = *FindPool(lease.pool);
  pool.ledger.RemoveLease(*pool.ledger.Find(lease.tenant), lease.bytes,
                          lease.handles, PlaceOf(lease));
  handles.GiveBack(MustFind(tenants, lease.tenant, "tenant").handles,
                   lease.handles);
  const auto waits = restoring.find(id);
  if (waits != restoring.end()) LeaveOut(id, waits->second, effects);
  Settle(lease.pool, pool, effects);
}

void Engine::State::Enqueue(WaiterRecord record) {
  const Request& request = record.asked;
  const uint64_t place = record.place;
  sessions[request.session].insert(
      {.place = place, .request = request.request});
  expiries.insert({.deadline = request.deadline,
                   .place = place,
                   .request = request.request});
  ++MustFind(tenants, request.tenant, "tenant").waiting;
  for (const LeaseId lease : request.leases) {
    restoring.emplace(lease, request.request);
  }
  for (const SessionId owner : request.sessions) {
    restores[owner].insert({.place = place, .request = request.request});
  }
  for (const Part& part : request.parts) {
    PoolState& pool = *FindPool(part.pool);
    pool.queue.Add(request.tenant, place, request.request, part.ask,
                   StandingOf(*pool.ledger.Find(request.tenant)));
    if (request.parts.size() > 1) pool.linked.emplace(place, request.request);
    if (record.window) {
      pool.queue.SetPassableUntil(request.tenant, place, record.window->from);
    }
  }
  if (record.window) ScheduleTurn(record);
  const RequestId id = request.request;
  waiters.emplace(id, std::move(record));
}

Engine::State::WaiterRecord Engine::State::Dequeue(RequestId request) {
  const auto it = waiters.find(request);
  WaiterRecord record = std::move(it->second);
  waiters.erase(it);
  if (record.window) UnscheduleTurn(record);
  const Request& asked = record.asked;
  const auto session = sessions.find(asked.session);
  session->second.erase({.place = record.place, .request = request});
  if (session->second.empty()) sessions.erase(session);
  expiries.erase(
      {.deadline = asked.deadline, .place = record.place, .request = request});
  --MustFind(tenants, asked.tenant, "tenant").waiting;
  for (const LeaseId lease : asked.leases) restoring.erase(lease);
  for (const SessionId owner : asked.sessions) {
    const auto entry = restores.find(owner);
    entry->second.erase({.place = record.place, .request = request});
    if (entry->second.empty()) restores.erase(entry);
  }
  for (const Part& part : asked.parts) {
    PoolState& pool = *FindPool(part.pool);
    pool.queue.Remove(asked.tenant, record.place, part.ask.bytes,
                      StandingOf(*pool.ledger.Find(asked.tenant)));
    pool.linked.erase(record.place);
  }
  return record;
}

void Engine::State::DenyWaiting(RequestId request, const Refusal& refusal,
                                Effects& effects) {
  effects.push_back(Refuse(Dequeue(request).asked, refusal));
}

}  // namespace gmb::quota
