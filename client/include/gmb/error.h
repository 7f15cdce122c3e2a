#ifndef GMB_ERROR_H_
#define GMB_ERROR_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gmb {

// Why the broker refused. The numbers are those of the wire
// (gmb.v1.ErrorReason); a newer broker may send others.
enum class ErrorReason : int32_t {
  kUnspecified = 0,
  kBadRequest = 1,    // INVALID_ARGUMENT: fix the field that `field` names
  kNoSession = 2,     // UNAUTHENTICATED: connect again
  kNotOperator = 3,   // PERMISSION_DENIED
  kNoSuchLease = 4,   // NOT_FOUND, also for another tenant's lease
  kNoSuchTenant = 5,  // NOT_FOUND, also from Connect
  kNoSuchDevice = 6,  // NOT_FOUND
  kTenantLimit =
      7,  // RESOURCE_EXHAUSTED: release something, or ask the operator
  kTooManyHandles = 8,      // RESOURCE_EXHAUSTED: too many slabs
  kPoolExhausted = 9,       // RESOURCE_EXHAUSTED, after the wait
  kOvercommitted = 10,      // FAILED_PRECONDITION, with the deficit
  kBadState = 11,           // FAILED_PRECONDITION
  kCancelledByClient = 12,  // CANCELLED
  kDraining = 13,     // UNAVAILABLE: the broker is stopping, or the tenant goes
  kDeviceError = 14,  // INTERNAL
  kDeviceLost = 15,   // UNAVAILABLE
  kTooManySessions = 16,  // RESOURCE_EXHAUSTED
  kTooManyRequests =
      17,         // RESOURCE_EXHAUSTED: more in flight than a session may have
  kPausing = 18,  // RESOURCE_EXHAUSTED: the session is being paused, and
                  // this is above its tenant's guarantee
  kContentsLost = 19,  // DATA_LOSS: contents kept off the device are gone
  kNameTaken = 20,     // ALREADY_EXISTS: attach to the shared lease instead
};

// The word of the wire, "TENANT_LIMIT"; "REASON_<n>" for one this library does
// not know.
[[nodiscard]] std::string ErrorReasonName(ErrorReason reason);

// The detail of every refusal of the broker.
struct ErrorDetail {
  ErrorReason reason = ErrorReason::kUnspecified;
  // How many bytes were too many, where that is the reason; otherwise 0.
  uint64_t deficit_bytes = 0;
  // When trying again may help; zero when the broker did not say.
  absl::Duration retry_after = absl::ZeroDuration();
  // The offending field, with kBadRequest.
  std::string field;
};

// The detail of a status that came from the broker's own decision. None on
// statuses that the library or the transport made: the broker could not be
// reached, hung up, fell silent, or this process cannot map the memory.
[[nodiscard]] std::optional<ErrorDetail> GetErrorDetail(
    const absl::Status& status);

}  // namespace gmb

#endif  // GMB_ERROR_H_
