// The names of refusals.
#include "quota/reason.h"

namespace gmb::quota {

absl::string_view ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kBadRequest:
      return "BAD_REQUEST";
    case Reason::kNoSuchTenant:
      return "NO_SUCH_TENANT";
    case Reason::kNoSuchPool:
      return "NO_SUCH_DEVICE";
    case Reason::kBadState:
      return "BAD_STATE";
    case Reason::kTenantLimit:
      return "TENANT_LIMIT";
    case Reason::kTooManyHandles:
      return "TOO_MANY_HANDLES";
    case Reason::kPoolExhausted:
      return "POOL_EXHAUSTED";
    case Reason::kOvercommitted:
      return "OVERCOMMITTED";
    case Reason::kDraining:
      return "DRAINING";
    case Reason::kCancelled:
      return "CANCELLED";
  }
  return "UNKNOWN";
}

}  // namespace gmb::quota
