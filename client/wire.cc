// The wire's types, as the public interface and the devices have them.
#include "client/wire.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmb/error.h"
#include "proto/error_status.h"

namespace gmb {

std::string ErrorReasonName(ErrorReason reason) {
  const auto number = static_cast<int>(reason);
  if (!v1::ErrorReason_IsValid(number)) return absl::StrCat("REASON_", number);
  if (reason == ErrorReason::kUnspecified) return "UNSPECIFIED";
  return v1::ErrorReason_Name(static_cast<v1::ErrorReason>(number));
}

std::optional<ErrorDetail> GetErrorDetail(const absl::Status& status) {
  const std::optional<v1::ErrorDetail> wire = proto::GetErrorDetail(status);
  if (!wire.has_value()) return std::nullopt;
  ErrorDetail detail;
  detail.reason = static_cast<ErrorReason>(wire->reason());
  detail.deficit_bytes = wire->deficit_bytes();
  detail.retry_after = internal::DurationFromWire(wire->retry_after());
  detail.field = wire->field();
  return detail;
}

namespace internal {

absl::Status ProtocolError(absl::string_view what) {
  return absl::InternalError(
      absl::StrCat("gmb: the broker broke the protocol (update the older of "
                   "broker and library): ",
                   what));
}

QuotaView QuotaFromWire(const v1::QuotaView& quota) {
  QuotaView view;
  view.device = quota.device();
  view.guarantee_bytes = quota.guarantee_bytes();
  view.limit_bytes = quota.limit_bytes();
  view.weight = quota.weight();
  view.leased_bytes = quota.leased_bytes();
  view.unreturned_bytes = quota.unreturned_bytes();
  view.pool_bytes = quota.pool_bytes();
  view.obtainable_bytes = quota.obtainable_bytes();
  view.over_limit_bytes = quota.over_limit_bytes();
  view.evicted_bytes = quota.evicted_bytes();
  return view;
}

Device DeviceFromWire(const v1::DeviceInfo& info) {
  Device device;
  device.uuid = info.uuid();
  device.name = info.name();
  device.granularity_bytes = info.granularity_bytes();
  device.total_bytes = info.total_bytes();
  switch (info.kind()) {
    case v1::DEVICE_KIND_VMM:
      device.kind = DeviceKind::kVmm;
      break;
    case v1::DEVICE_KIND_IPC:
      device.kind = DeviceKind::kIpc;
      break;
    case v1::DEVICE_KIND_HOST:
      device.kind = DeviceKind::kHost;
      break;
    default:
      device.kind = DeviceKind::kUnknown;
  }
  return device;
}

absl::StatusOr<device::DeviceInfo> MappableDevice(const v1::DeviceInfo& info) {
  device::DeviceInfo device;
  device.uuid = info.uuid();
  device.name = info.name();
  device.total_bytes = info.total_bytes();
  device.granularity_bytes = info.granularity_bytes();
  switch (info.kind()) {
    case v1::DEVICE_KIND_VMM:
      device.kind = device::DeviceKind::kVmm;
      return device;
    case v1::DEVICE_KIND_IPC:
      device.kind = device::DeviceKind::kIpc;
      return device;
    case v1::DEVICE_KIND_HOST:
      device.kind = device::DeviceKind::kHost;
      return device;
    default:
      return absl::FailedPreconditionError(
          absl::StrCat("gmb: this library does not know the device's kind; "
                       "update it: device=",
                       info.uuid(), " kind=", static_cast<int>(info.kind())));
  }
}

v1::Contents ContentsToWire(Contents contents) {
  switch (contents) {
    case Contents::kDiscard:
      return v1::DISCARD;
    case Contents::kResident:
      return v1::RESIDENT;
    case Contents::kPreserve:
      break;
  }
  return v1::PRESERVE;
}

google::protobuf::Duration DurationToWire(absl::Duration duration) {
  // Of google.protobuf.Duration.
  constexpr int64_t kMostSeconds = 315'576'000'000;
  duration =
      std::clamp(duration, absl::ZeroDuration(), absl::Seconds(kMostSeconds));
  google::protobuf::Duration wire;
  absl::Duration rest;
  wire.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  wire.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return wire;
}

absl::Duration DurationFromWire(const google::protobuf::Duration& duration) {
  return std::max(
      absl::ZeroDuration(),
      absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos()));
}

}  // namespace internal
}  // namespace gmb
