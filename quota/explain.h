// How much a tenant could get from a pool now, and what stands in the way of
// more.
#ifndef GMB_QUOTA_EXPLAIN_H_
#define GMB_QUOTA_EXPLAIN_H_

#include <cstdint>

#include "quota/admission.h"
#include "quota/view.h"

namespace gmb::quota {

// The most that one request without waiting could get: hard bytes, and soft
// ones.
uint64_t ObtainableBytes(const PoolState& pool, const Account& account,
                         const Claims& claims);
uint64_t ObtainableSoftBytes(const PoolState& pool, const Account& account,
                             const Claims& claims);

// All of an Explanation but the waiting requests and the times of claims. O(n).
Explanation ExplainPool(const PoolState& pool, TenantId tenant,
                        const Claims& claims);

}  // namespace gmb::quota

#endif  // GMB_QUOTA_EXPLAIN_H_
