// Serving those who wait, after the books of a pool have changed.
#include <algorithm>
#include <utility>

#include "quota/engine_state.h"
#include "quota/must_find.h"

namespace gmb::quota {
namespace {

// Adds the pools that requests of several pools tie to these.
void AddLinked(const Pools& pools, const Waiters& waiters,
               std::vector<PoolId>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    for (const auto& [place, request] : pools.Find(ids[i])->linked) {
      for (const Request::Part& part : waiters.Of(request).asked.parts) {
        if (std::find(ids.begin(), ids.end(), part.pool) == ids.end()) {
          ids.push_back(part.pool);
        }
      }
    }
  }
  std::sort(ids.begin(), ids.end());
}

using ClaimsByPool = absl::flat_hash_map<PoolId, Claims>;

// Whether the bytes that it asks of its other pools are there.
bool FitsElsewhere(const Pools& pools, const Heads& heads, const Waiter& waiter,
                   PoolId except, ClaimsByPool& known) {
  const Request& request = waiter.asked;
  return std::all_of(
      request.parts.begin(), request.parts.end(),
      [&](const Request::Part& part) {
        if (part.pool == except) return true;
        const PoolState& pool = *pools.Find(part.pool);
        const auto [claims, fresh] = known.try_emplace(part.pool);
        if (fresh) claims->second = heads.ClaimsIn(part.pool, pool);
        // Its turn in one pool is enough: of two that claim in the same pools
        // the older one goes first, or each could wait for the other's end.
        Claims older = claims->second;
        older.held.erase(std::remove_if(older.held.begin(), older.held.end(),
                                        [&](const Claim& claim) {
                                          return claim.place > waiter.place;
                                        }),
                         older.held.end());
        return !CheckNow(pool, *pool.ledger.Find(request.tenant), part.ask,
                         older, waiter.place);
      });
}

// Tells the queue which requests of several pools lack bytes in another one.
void MarkLackingElsewhere(const Pools& pools, const Waiters& waiters,
                          const Heads& heads, PoolId id, PoolState& pool) {
  ClaimsByPool known;
  for (const auto& [place, request] : pool.linked) {
    const Waiter& waiter = waiters.Of(request);
    pool.queue.SetLackingElsewhere(
        waiter.asked.tenant, place,
        !FitsElsewhere(pools, heads, waiter, id, known));
  }
}

}  // namespace

void Engine::State::Settle(PoolId id, PoolState& pool, Effects& effects) {
  pool.ledger.Settle();
  Publish(id, pool, effects);
  ServeAll({id}, effects);
}

void Engine::State::SettleAll(std::vector<PoolId> ids, Effects& effects) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const PoolId id : ids) {
    PoolState& pool = *pools.Find(id);
    pool.ledger.Settle();
    Publish(id, pool, effects);
  }
  ServeAll(std::move(ids), effects);
}

void Engine::State::ServeAll(std::vector<PoolId> ids, Effects& effects) {
  AddLinked(pools, waiters, ids);
  bool served = !ids.empty();
  while (served) {
    served = false;
    for (const PoolId id : ids) {
      served = Serve(id, *pools.Find(id), effects) || served;
    }
    // One pool by itself has been served to the end.
    if (ids.size() == 1) return;
  }
}

void Engine::State::Publish(PoolId id, PoolState& pool, Effects& effects) {
  if (pool.shrink_pending &&
      pool.ledger.capacity_bytes() == pool.ledger.target_bytes()) {
    pool.shrink_pending = false;
    effects.push_back(PoolApplied{.pool = id});
  }
  for (Account* account : pool.ledger.TakeTouched()) {
    pool.queue.Update(account->tenant, StandingOf(*account));
    const uint64_t remaining_bytes = account->PendingBytes();
    if (account->quota_pending != (remaining_bytes > 0)) {
      account->quota_pending = remaining_bytes > 0;
      if (account->quota_pending) {
        effects.push_back(QuotaPending{account->tenant, id, remaining_bytes});
      } else {
        effects.push_back(QuotaApplied{account->tenant, id});
      }
    }
    if (std::exchange(account->budget_changed, false)) {
      effects.push_back(BudgetChanged{.tenant = account->tenant, .pool = id});
    }
  }
}

void Engine::State::BeginClaims(PoolId id, const PoolState& pool,
                                uint64_t kept_bytes) {
  const Instant from = now + std::max(options.pass_window, Nanoseconds(1));
  for (const RequestId head :
       heads().In(id, pool, kept_bytes, Instant::Max())) {
    const Waiter* begun = waiters.BeginClaim(head, from, now);
    if (begun == nullptr) continue;
    for (const Request::Part& part : begun->asked.parts) {
      pools.Find(part.pool)->queue.SetPassableUntil(begun->asked.tenant,
                                                    begun->place, from);
    }
  }
}

std::vector<PoolId> Engine::State::TurnClaims() {
  return waiters.TurnClaims(now, [&](const Request& request) {
    return std::max(
        pools.IsCovered(request) ? options.covered_hold : options.pass_window,
        Nanoseconds(1));
  });
}

std::optional<RequestId> Engine::State::NextToBorrow(PoolId id,
                                                     PoolState& pool) {
  const Ledger& ledger = pool.ledger;
  if (ledger.IsShrinking() || ledger.SlackBytes() < 0) return std::nullopt;
  const Claims claims = heads().ClaimsIn(id, pool);
  // A sum that is not broken may still have fewer bytes than are leased:
  // missing ones that soft leases stand for.
  const int64_t free_bytes = std::max<int64_t>(ledger.FreeBytes(), 0) -
                             static_cast<int64_t>(claims.guaranteed_bytes);
  if (free_bytes < 0) return std::nullopt;
  BeginClaims(id, pool, claims.guaranteed_bytes);
  return pool.queue.NextBorrowing(free_bytes, ledger.SlackBytes(), claims.held);
}

bool Engine::State::Serve(PoolId id, PoolState& pool, Effects& effects) {
  bool served = false;
  MarkLackingElsewhere(pools, waiters, heads(), id, pool);
  while (pool.queue.waiting().requests > 0) {
    auto next = pool.queue.NextWithinGuarantee(pool.ledger.FreeBytes());
    if (!next) next = NextToBorrow(id, pool);
    if (!next) return served;
    served = true;
    const Request request = Dequeue(*next).asked;
    if (!request.IsRestore() &&
        !handles.Fit(MustFind(tenants, request.tenant, "tenant").handles,
                     request.handles)) {
      effects.push_back(Denied{.request = request.request,
                               .session = request.session,
                               .reason = Reason::kTooManyHandles,
                               .retry_after = options.pass_window});
      continue;
    }
    Carry(request, effects);
    for (const Request::Part& part : request.parts) {
      Publish(part.pool, *pools.Find(part.pool), effects);
    }
    if (request.parts.size() > 1)
      MarkLackingElsewhere(pools, waiters, heads(), id, pool);
  }
  return served;
}

}  // namespace gmb::quota
