// Why something was refused. The names are those of the wire
// (gmb.v1.ErrorReason).
#ifndef GMB_QUOTA_REASON_H_
#define GMB_QUOTA_REASON_H_

#include "absl/strings/string_view.h"

namespace gmb::quota {

enum class Reason {
  kBadRequest,      // 0 bytes, a bad fraction, a guarantee above the limit, ...
  kNoSuchTenant,    // the tenant was never set
  kNoSuchPool,      // the pool was never set
  kBadState,        // e.g. removing a tenant that still holds leases
  kTenantLimit,     // above the tenant's limit
  kTooManyHandles,  // more slabs than the tenant or the broker may have
  kPoolExhausted,   // not enough free bytes, now or when the wait ended
  kOvercommitted,   // hard bytes and guarantees would exceed the pool
  kDraining,        // the pool makes no new grants
  kCancelled,       // the request was withdrawn, or its session closed
};

// "TENANT_LIMIT" and so on.
absl::string_view ReasonName(Reason reason);

}  // namespace gmb::quota

#endif  // GMB_QUOTA_REASON_H_
