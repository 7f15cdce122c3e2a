// Quotas in bytes, and whether they fit into a pool.
#include "quota/tenant_quota.h"

#include <cmath>

namespace gmb::quota {

ResolvedQuota Resolve(const TenantQuota& quota, uint64_t pool_bytes,
                      uint64_t granularity_bytes) {
  return {
      .guarantee_bytes = quota.guarantee.Resolve(pool_bytes, granularity_bytes),
      .limit_bytes = quota.limit.Resolve(pool_bytes, granularity_bytes)};
}

std::optional<Refusal> CheckQuota(const TenantQuota& quota, uint64_t pool_bytes,
                                  uint64_t granularity_bytes) {
  const bool weight_ok = std::isfinite(quota.weight) && quota.weight > 0;
  if (!quota.guarantee.IsValid() || !quota.limit.IsValid() || !weight_ok) {
    return Refusal{.reason = Reason::kBadRequest};
  }
  const ResolvedQuota bytes = Resolve(quota, pool_bytes, granularity_bytes);
  if (bytes.guarantee_bytes > bytes.limit_bytes) {
    return Refusal{.reason = Reason::kBadRequest,
                   .deficit_bytes = bytes.guarantee_bytes - bytes.limit_bytes};
  }
  return std::nullopt;
}

std::optional<SetRefusal> CheckQuotas(absl::Span<const TenantQuota> quotas,
                                      uint64_t pool_bytes,
                                      uint64_t granularity_bytes) {
  uint64_t sum_bytes = 0;
  for (size_t i = 0; i < quotas.size(); ++i) {
    if (auto refusal = CheckQuota(quotas[i], pool_bytes, granularity_bytes)) {
      return SetRefusal{.refusal = *refusal, .index = i};
    }
    // Each is at most 2^46; 2^18 tenants would be needed to overflow.
    sum_bytes +=
        Resolve(quotas[i], pool_bytes, granularity_bytes).guarantee_bytes;
  }
  if (sum_bytes > pool_bytes) {
    return SetRefusal{.refusal = {.reason = Reason::kOvercommitted,
                                  .deficit_bytes = sum_bytes - pool_bytes}};
  }
  return std::nullopt;
}

}  // namespace gmb::quota
