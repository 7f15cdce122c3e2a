#ifndef GMB_BROKER_CONFIG_DEVICE_SPEC_H_
#define GMB_BROKER_CONFIG_DEVICE_SPEC_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/config/broker_config.h"

namespace gmb::broker {

// A device as it is written: "host:4GiB", "cuda:0", "GPU-<uuid>", and with
// "ipc:" before a GPU the compatibility kind. A host device has no name yet.
[[nodiscard]] absl::StatusOr<DeviceConfig> ParseDeviceSpec(
    absl::string_view text);

// Names host devices by their order and finds what is given twice.
[[nodiscard]] absl::Status NameDevices(std::vector<DeviceConfig>* devices);

}  // namespace gmb::broker

#endif  // GMB_BROKER_CONFIG_DEVICE_SPEC_H_
