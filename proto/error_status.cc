// Errors on the wire, and as statuses.
#include "proto/error_status.h"

#include <string>

#include "absl/strings/cord.h"

namespace gmb::proto {
namespace {

constexpr absl::string_view kDetailUrl =
    "type.googleapis.com/gmb.v1.ErrorDetail";

absl::StatusCode CodeOf(v1::ErrorReason reason) {
  switch (reason) {
    case v1::BAD_REQUEST:
      return absl::StatusCode::kInvalidArgument;
    case v1::NO_SESSION:
      return absl::StatusCode::kUnauthenticated;
    case v1::NOT_OPERATOR:
      return absl::StatusCode::kPermissionDenied;
    case v1::NO_SUCH_LEASE:
    case v1::NO_SUCH_TENANT:
    case v1::NO_SUCH_DEVICE:
      return absl::StatusCode::kNotFound;
    case v1::TENANT_LIMIT:
    case v1::TOO_MANY_HANDLES:
    case v1::POOL_EXHAUSTED:
    case v1::TOO_MANY_SESSIONS:
    case v1::TOO_MANY_REQUESTS:
    case v1::PAUSING:
      return absl::StatusCode::kResourceExhausted;
    case v1::OVERCOMMITTED:
    case v1::BAD_STATE:
      return absl::StatusCode::kFailedPrecondition;
    case v1::CANCELLED_BY_CLIENT:
      return absl::StatusCode::kCancelled;
    case v1::DRAINING:
    case v1::DEVICE_LOST:
      return absl::StatusCode::kUnavailable;
    case v1::CONTENTS_LOST:
      return absl::StatusCode::kDataLoss;
    case v1::NAME_TAKEN:
      return absl::StatusCode::kAlreadyExists;
    default:
      return absl::StatusCode::kInternal;
  }
}

void SetDetail(const v1::ErrorDetail& detail, absl::Status* status) {
  status->SetPayload(kDetailUrl, absl::Cord(detail.SerializeAsString()));
}

// Codes outside the range both sides know (a peer may send anything).
absl::StatusCode SafeCode(int code) {
  const bool known =
      code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return known ? static_cast<absl::StatusCode>(code)
               : absl::StatusCode::kUnknown;
}

// A broker that is not ours may leave it out, and a user reads it all the same.
absl::string_view Said(absl::string_view message) {
  return message.empty() ? "the broker refuses, and does not say why" : message;
}

}  // namespace

absl::Status MakeError(v1::ErrorReason reason, absl::string_view message,
                       const ErrorFields& fields) {
  v1::ErrorDetail detail;
  detail.set_reason(reason);
  detail.set_deficit_bytes(fields.deficit_bytes);
  detail.set_field(std::string(fields.field));
  if (fields.retry_after > absl::ZeroDuration()) {
    const int64_t ns = absl::ToInt64Nanoseconds(fields.retry_after);
    detail.mutable_retry_after()->set_seconds(ns / 1'000'000'000);
    detail.mutable_retry_after()->set_nanos(
        static_cast<int32_t>(ns % 1'000'000'000));
  }
  absl::Status status(CodeOf(reason), message);
  SetDetail(detail, &status);
  return status;
}

std::optional<v1::ErrorDetail> GetErrorDetail(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kDetailUrl);
  v1::ErrorDetail detail;
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) {
    return std::nullopt;
  }
  return detail;
}

v1::Error ToWireError(const absl::Status& status) {
  v1::Error error;
  error.set_code(static_cast<int>(status.code()));
  error.set_message(std::string(status.message()));
  if (std::optional<v1::ErrorDetail> detail = GetErrorDetail(status)) {
    *error.mutable_detail() = *detail;
  }
  return error;
}

absl::Status FromWireError(const v1::Error& error) {
  absl::Status status(SafeCode(error.code()), Said(error.message()));
  if (error.has_detail()) SetDetail(error.detail(), &status);
  return status;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::optional<v1::ErrorDetail> detail = GetErrorDetail(status);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()),
                      detail.has_value() ? detail->SerializeAsString() : "");
}

absl::Status FromGrpcStatus(const grpc::Status& grpc_status) {
  if (grpc_status.ok()) return absl::OkStatus();
  absl::Status status(SafeCode(grpc_status.error_code()),
                      Said(grpc_status.error_message()));
  v1::ErrorDetail detail;
  if (!grpc_status.error_details().empty() &&
      detail.ParseFromString(grpc_status.error_details())) {
    SetDetail(detail, &status);
  }
  return status;
}

}  // namespace gmb::proto
