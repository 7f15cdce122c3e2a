// Changes by operators and the device: pools, quotas, tenants, lost bytes.
#include <algorithm>
#include <utility>

#include "quota/engine_state.h"

namespace gmb::quota {

void Engine::State::On(const PoolSet& event, Effects& effects) {
  if (auto refused = pools.CheckTarget(event)) {
    effects.push_back(
        PoolRefused{event.pool, refused->tenant, refused->refusal});
    return;
  }
  PoolState& pool = pools.Open(event.pool, event.granularity_bytes);
  pool.ledger.SetTarget(event.target_bytes -
                        event.target_bytes % event.granularity_bytes);
  pool.ledger.Settle();
  const uint64_t remaining_bytes =
      pool.ledger.capacity_bytes() - pool.ledger.target_bytes();
  pool.shrink_pending = remaining_bytes > 0;
  if (pool.shrink_pending) {
    effects.push_back(
        PoolPending{.pool = event.pool, .remaining_bytes = remaining_bytes});
  } else {
    effects.push_back(PoolApplied{.pool = event.pool});
  }
  Publish(event.pool, pool, effects);
  SettleAll(DenyImpossible(event.pool, pool, effects), effects);
}

void Engine::State::On(const PoolDrain& event, Effects& effects) {
  PoolState* pool = pools.Find(event.pool);
  if (pool == nullptr) return;
  pool->draining = event.draining;
  if (!event.draining) return;
  const auto refuse_all = [](const Request& request) {
    // An evicted lease may come back, to be saved.
    if (request.IsRestore()) return std::optional<Refusal>();
    return std::optional<Refusal>({.reason = Reason::kDraining});
  };
  const auto suspect_all = [](TenantId, uint64_t, uint64_t) { return true; };
  // Restores that those kept back may be served now.
  SettleAll(DenyWhere(event.pool, suspect_all, refuse_all, effects), effects);
}

void Engine::State::On(const MissingChanged& event, Effects& effects) {
  PoolState* pool = pools.Find(event.pool);
  if (pool == nullptr) return;
  pool->ledger.SetMissing(std::min(event.missing_bytes, kMaxPoolBytes),
                          event.returning_bytes);
  Settle(event.pool, *pool, effects);
}

void Engine::State::On(const UnreturnedChanged& event, Effects& effects) {
  PoolState* pool = pools.Find(event.pool);
  if (pool == nullptr || !tenants.contains(event.tenant)) return;
  pool->ledger.SetUnreturned(event.tenant,
                             std::min(event.unreturned_bytes, kMaxPoolBytes));
  Settle(event.pool, *pool, effects);
}

void Engine::State::On(const TenantSet& event, Effects&) {
  tenants[event.tenant].handles.most = event.max_handles;
}

void Engine::State::On(const QuotaSet& event, Effects& effects) {
  auto refusal = pools.CheckQuota(event);
  if (!tenants.contains(event.tenant)) {
    refusal = Refusal{.reason = Reason::kNoSuchTenant};
  }
  if (refusal) {
    effects.push_back(QuotaRefused{event.tenant, event.pool, *refusal});
    return;
  }
  PoolState* pool = pools.Find(event.pool);
  pool->ledger.SetQuota(event.tenant, event.quota);
  pool->ledger.Settle();
  Account& account = *pool->ledger.Find(event.tenant);
  const uint64_t remaining_bytes = account.PendingBytes();
  account.quota_pending = remaining_bytes > 0;
  if (account.quota_pending) {
    effects.push_back(QuotaPending{event.tenant, event.pool, remaining_bytes});
  } else {
    effects.push_back(QuotaApplied{event.tenant, event.pool});
  }
  Publish(event.pool, *pool, effects);
  SettleAll(DenyImpossible(event.pool, *pool, effects), effects);
}

void Engine::State::On(const TenantRemove& event, Effects& effects) {
  if (auto refusal = CheckRemove(event)) {
    effects.push_back(TenantRefused{event.tenant, *refusal});
    return;
  }
  tenants.erase(event.tenant);
  effects.push_back(TenantRemoved{.tenant = event.tenant});
  std::vector<PoolId> touched;
  for (const PoolId id : pools.Ids()) {
    Ledger& ledger = pools.Find(id)->ledger;
    if (ledger.Find(event.tenant) == nullptr) continue;
    ledger.RemoveAccount(event.tenant);
    touched.push_back(id);
  }
  SettleAll(std::move(touched), effects);
}

std::optional<Refusal> Engine::State::CheckRemove(
    const TenantRemove& change) const {
  const auto tenant = tenants.find(change.tenant);
  if (tenant == tenants.end()) return Refusal{.reason = Reason::kNoSuchTenant};
  const uint64_t held_bytes = pools.HeldBytes(change.tenant);
  if (held_bytes == 0 && tenant->second.waiting == 0) return std::nullopt;
  return Refusal{.reason = Reason::kBadState, .deficit_bytes = held_bytes};
}

template <typename Suspect, typename Refuse>
std::vector<PoolId> Engine::State::DenyWhere(PoolId id, const Suspect& suspect,
                                             const Refuse& refuse,
                                             Effects& effects) {
  std::vector<PoolId> touched = {id};
  std::vector<Waiters::Arrival> doomed;
  const WaitQueue& queue = pools.Find(id)->queue;
  queue.ForEachTenant([&](TenantId tenant, uint64_t most, uint64_t most_hard) {
    if (!suspect(tenant, most, most_hard)) return;
    queue.ForEachOf(tenant, /*after=*/0, [&](RequestId request) {
      ++denial_looks;
      const Waiter& waiter = waiters.Of(request);
      if (refuse(waiter.asked))
        doomed.push_back({.place = waiter.place, .request = request});
      return true;
    });
  });
  std::sort(doomed.begin(), doomed.end());
  for (const Waiters::Arrival& arrival : doomed) {
    const Request& asked = waiters.Of(arrival.request).asked;
    asked.AddPoolsTo(touched);
    DenyWaiting(arrival.request, *refuse(asked), effects);
  }
  return touched;
}

std::vector<PoolId> Engine::State::DenyImpossible(PoolId id,
                                                  const PoolState& pool,
                                                  Effects& effects) {
  // A request that fits once would fit with fewer bytes, and as a soft one.
  const auto suspect = [&](TenantId tenant, uint64_t most, uint64_t most_hard) {
    const Account& account = *pool.ledger.Find(tenant);
    const Ask soft{.bytes = most, .hard = false};
    const Ask hard{.bytes = most_hard, .hard = true};
    return CheckEver(pool.ledger, account, soft).has_value() ||
           (most_hard > 0 && CheckEver(pool.ledger, account, hard).has_value());
  };
  const auto refuse = [&](const Request& request) -> std::optional<Refusal> {
    return CheckEver(pool.ledger, *pool.ledger.Find(request.tenant),
                     request.PartIn(id)->ask);
  };
  return DenyWhere(id, suspect, refuse, effects);
}

}  // namespace gmb::quota
