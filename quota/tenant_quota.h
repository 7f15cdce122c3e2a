// A tenant's quota on one pool, and whether a whole set of quotas fits.
#ifndef GMB_QUOTA_TENANT_QUOTA_H_
#define GMB_QUOTA_TENANT_QUOTA_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "quota/amount.h"
#include "quota/reason.h"

namespace gmb::quota {

struct TenantQuota {
  Amount guarantee{};  // always obtainable
  Amount limit{};      // never exceeded by new grants; at least the guarantee
  double weight = 1;   // share of the surplus; finite and above 0

  friend bool operator==(const TenantQuota& a, const TenantQuota& b) = default;
};

// A quota in bytes of one pool.
struct ResolvedQuota {
  uint64_t guarantee_bytes = 0;
  uint64_t limit_bytes = 0;
};
ResolvedQuota Resolve(const TenantQuota& quota, uint64_t pool_bytes,
                      uint64_t granularity_bytes);

// A refusal as a value: what is wrong and how many bytes are too many.
struct Refusal {
  Reason reason = Reason::kBadRequest;
  // With kOvercommitted: bytes by which the guarantees exceed the pool. With
  // kBadRequest: bytes of guarantee above the limit, or 0 when an amount or the
  // weight is not a number it may be. With kBadState: bytes still held.
  uint64_t deficit_bytes = 0;
  // With kPoolExhausted: the bytes are there, and are kept for requests that
  // are served first.
  bool claimed = false;

  friend bool operator==(const Refusal& a, const Refusal& b) = default;
};

// Whether one quota makes sense by itself in a pool of this size.
std::optional<Refusal> CheckQuota(const TenantQuota& quota, uint64_t pool_bytes,
                                  uint64_t granularity_bytes);

// Whether the quotas of all tenants fit into a pool together. `index` is the
// position of the offending quota with kBadRequest.
struct SetRefusal {
  Refusal refusal{};
  size_t index = 0;
};
std::optional<SetRefusal> CheckQuotas(absl::Span<const TenantQuota> quotas,
                                      uint64_t pool_bytes,
                                      uint64_t granularity_bytes);

}  // namespace gmb::quota

#endif  // GMB_QUOTA_TENANT_QUOTA_H_
