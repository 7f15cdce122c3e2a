// The C interface: errors as objects of the caller's.
#include "client/c/c_error.h"

#include <algorithm>
#include <limits>

#include "gmb/c_api.h"
#include "gmb/error.h"
#include "gmb/v1/types.pb.h"

namespace gmb::internal {
namespace {

// Made when the library is loaded, so that it is there when memory is not;
// never destroyed, because other threads may outlive main.
gmb_error* const kOutOfMemory =
    new gmb_error{.code = GMB_CODE_RESOURCE_EXHAUSTED,
                  .message = "gmb: this process is out of memory",
                  .field = {}};

static_assert(GMB_CODE_UNAUTHENTICATED ==
              static_cast<int>(absl::StatusCode::kUnauthenticated));
static_assert(GMB_CODE_RESOURCE_EXHAUSTED ==
              static_cast<int>(absl::StatusCode::kResourceExhausted));
static_assert(GMB_REASON_BAD_REQUEST == int{v1::BAD_REQUEST});
static_assert(GMB_REASON_TENANT_LIMIT == int{v1::TENANT_LIMIT});
static_assert(GMB_REASON_NAME_TAKEN == int{v1::ErrorReason_MAX},
              "gmb/c_api.h and gmb/error.h lack a reason");

}  // namespace

gmb_error* ToCError(const absl::Status& status) noexcept {
  if (status.ok()) return nullptr;
  try {
    auto* const error =
        new gmb_error{.code = static_cast<int32_t>(status.code()),
                      .message = std::string(status.message()),
                      .field = {}};
    if (const std::optional<ErrorDetail> detail = GetErrorDetail(status)) {
      error->reason = static_cast<int32_t>(detail->reason);
      error->field = detail->field;
      error->deficit_bytes = detail->deficit_bytes;
      error->retry_after_ms = absl::ToInt64Milliseconds(detail->retry_after);
    }
    return error;
  } catch (...) {
    return kOutOfMemory;
  }
}

}  // namespace gmb::internal

int32_t gmb_error_code(const gmb_error* error) {
  return error == nullptr ? GMB_CODE_OK : error->code;
}

int32_t gmb_error_reason(const gmb_error* error) {
  return error == nullptr ? GMB_REASON_NONE : error->reason;
}

const char* gmb_error_message(const gmb_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}

const char* gmb_error_field(const gmb_error* error) {
  return error == nullptr ? "" : error->field.c_str();
}

uint64_t gmb_error_deficit_bytes(const gmb_error* error) {
  return error == nullptr ? 0 : error->deficit_bytes;
}

int64_t gmb_error_retry_after_ms(const gmb_error* error) {
  return error == nullptr ? 0 : error->retry_after_ms;
}

void gmb_error_free(gmb_error* error) {
  if (error != gmb::internal::kOutOfMemory) delete error;
}
