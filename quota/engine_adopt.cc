// Leases that another engine has granted: a broker takes over from the one
// before it.
#include <algorithm>

#include "quota/engine_state.h"

namespace gmb::quota {

bool Engine::State::AdoptOne(const AdoptedLease& adopted) {
  const LeaseView& lease = adopted.lease;
  PoolState* pool = pools.Find(lease.pool);
  const auto tenant = tenants.find(lease.tenant);
  const bool sound = pool != nullptr && tenant != tenants.end() &&
                     adopted.id.value != 0 && lease.bytes > 0 &&
                     lease.bytes <= kMaxPoolBytes && lease.handles > 0 &&
                     lease.bytes % pool->ledger.granularity_bytes() == 0;
  if (!sound || leases.Find(adopted.id) != nullptr) return false;
  if (pool->ledger.Find(lease.tenant) == nullptr)
    pool->ledger.SetQuota(lease.tenant, TenantQuota{});
  leases.Adopt(adopted, pools);
  handles.Take(tenant->second.handles, lease.handles);
  return true;
}

// Guarantees first, as if the tenants had been set after the leases were
// granted: then none is in force at the cost of what is held.
void Engine::State::Adopt(const std::vector<AdoptedLease>& adopted,
                          uint64_t last_id, Effects& effects) {
  leases.GoOnFrom(last_id);
  std::vector<PoolId> all = pools.Ids();
  for (const PoolId id : all) pools.Find(id)->ledger.WithdrawGuarantees();
  for (const AdoptedLease& lease : adopted) (void)AdoptOne(lease);
  for (const PoolId id : all) {
    PoolState& pool = *pools.Find(id);
    pool.ledger.GrowToWhatIsHeld();
    if (!pool.ledger.IsShrinking()) continue;
    pool.shrink_pending = true;
    effects.push_back(PoolPending{
        .pool = id,
        .remaining_bytes =
            pool.ledger.capacity_bytes() - pool.ledger.target_bytes()});
  }
  SettleAll(std::move(all), effects);
}

}  // namespace gmb::quota
