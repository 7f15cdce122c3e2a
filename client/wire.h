#ifndef GMB_CLIENT_WIRE_H_
#define GMB_CLIENT_WIRE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device/handle.h"
#include "gmb/options.h"
#include "gmb/v1/session.pb.h"
#include "gmb/v1/types.pb.h"
#include "google/protobuf/duration.pb.h"

namespace gmb::internal {

// The wire's types as the public API and the device module have them.

// The broker sent what the protocol does not allow. INTERNAL.
[[nodiscard]] absl::Status ProtocolError(absl::string_view what);

[[nodiscard]] QuotaView QuotaFromWire(const v1::QuotaView& quota);
[[nodiscard]] Device DeviceFromWire(const v1::DeviceInfo& info);
// FAILED_PRECONDITION for a kind that this library does not know.
[[nodiscard]] absl::StatusOr<device::DeviceInfo> MappableDevice(
    const v1::DeviceInfo& info);
[[nodiscard]] v1::Contents ContentsToWire(Contents contents);

// Negative durations count as 0; what the wire cannot hold as its most.
[[nodiscard]] google::protobuf::Duration DurationToWire(
    absl::Duration duration);
[[nodiscard]] absl::Duration DurationFromWire(
    const google::protobuf::Duration& duration);

}  // namespace gmb::internal

#endif  // GMB_CLIENT_WIRE_H_
