#ifndef GMB_PROTO_ERROR_STATUS_H_
#define GMB_PROTO_ERROR_STATUS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmb/v1/types.pb.h"
#include "grpcpp/support/status.h"

// An absl::Status that carries an ErrorDetail as its payload, and its two forms
// on the wire: v1::Error inside the stream, grpc::Status for a failed call.
namespace gmb::proto {

struct ErrorFields {
  uint64_t deficit_bytes = 0;
  absl::Duration retry_after = absl::ZeroDuration();
  absl::string_view field = {};
};

// The code follows from the reason (docs/protocol.md has the table).
[[nodiscard]] absl::Status MakeError(v1::ErrorReason reason,
                                     absl::string_view message,
                                     const ErrorFields& fields = {});

// The detail that `status` carries; nullopt when it came from elsewhere.
[[nodiscard]] std::optional<v1::ErrorDetail> GetErrorDetail(
    const absl::Status& status);

[[nodiscard]] v1::Error ToWireError(const absl::Status& status);
[[nodiscard]] absl::Status FromWireError(const v1::Error& error);
[[nodiscard]] grpc::Status ToGrpcStatus(const absl::Status& status);
[[nodiscard]] absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace gmb::proto

#endif  // GMB_PROTO_ERROR_STATUS_H_
