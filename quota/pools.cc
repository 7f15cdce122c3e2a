// The pools' table, and what is asked of several pools at once.
#include "quota/pools.h"

#include <algorithm>

namespace gmb::quota {

PoolState& Pools::Open(PoolId id, uint64_t granularity_bytes) {
  PlacedPool& slot = table_[id];
  if (slot == nullptr) slot = std::make_unique<PoolState>(granularity_bytes);
  return *slot;
}

std::vector<PoolId> Pools::Ids() const {
  std::vector<PoolId> ids;
  ids.reserve(table_.size());
  for (const auto& [id, pool] : table_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::optional<Ledger::TargetRefusal> Pools::CheckTarget(
    const PoolSet& change) const {
  using Refused = Ledger::TargetRefusal;
  if (change.granularity_bytes == 0 ||
      change.granularity_bytes > kMaxPoolBytes ||
      change.target_bytes > kMaxPoolBytes) {
    return Refused{.refusal = {.reason = Reason::kBadRequest}, .tenant = {}};
  }
  const PoolState* pool = Find(change.pool);
  if (pool == nullptr) return std::nullopt;
  if (pool->ledger.granularity_bytes() != change.granularity_bytes) {
    return Refused{.refusal = {.reason = Reason::kBadRequest}, .tenant = {}};
  }
  return pool->ledger.CheckTarget(
      change.target_bytes - change.target_bytes % change.granularity_bytes);
}

std::optional<Refusal> Pools::CheckQuota(const QuotaSet& change) const {
  const PoolState* pool = Find(change.pool);
  if (pool == nullptr) return Refusal{.reason = Reason::kNoSuchPool};
  return pool->ledger.CheckQuota(change.tenant, change.quota);
}

uint64_t Pools::HeldBytes(TenantId tenant) const {
  uint64_t held_bytes = 0;
  for (const auto& [id, pool] : table_) {
    const Account* account = pool->ledger.Find(tenant);
    if (account == nullptr) continue;
    held_bytes += account->leased_bytes + account->unreturned_bytes;
  }
  return held_bytes;
}

bool Pools::IsWithinGuarantee(const Request& request) const {
  return std::all_of(request.parts.begin(), request.parts.end(),
                     [&](const Request::Part& part) {
                       const Account& account =
                           *Find(part.pool)->ledger.Find(request.tenant);
                       return part.ask.bytes <= account.GuaranteeLeftBytes();
                     });
}

bool Pools::IsCovered(const Request& request) const {
  return std::all_of(request.parts.begin(), request.parts.end(),
                     [&](const Request::Part& part) {
                       const PoolState& pool = *Find(part.pool);
                       return quota::IsCovered(
                           pool, *pool.ledger.Find(request.tenant), part.ask);
                     });
}

}  // namespace gmb::quota
