// The broker's start: the devices, as people write them.
#include "broker/config/device_spec.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "broker/config/values.h"

namespace gmb::broker {
namespace {

// "GPU-8f5c1c2e-..." as NVIDIA prints it; MIG instances are "MIG-...".
bool IsUuid(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "GPU-") &&
      !absl::ConsumePrefix(&text, "MIG-"))
    return false;
  return !text.empty() && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c)) ||
                  c == '-';
         });
}

bool IsOrdinal(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "cuda:")) return false;
  return !text.empty() && text.size() <= 3 &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

}  // namespace

absl::StatusOr<DeviceConfig> ParseDeviceSpec(absl::string_view text) {
  DeviceConfig device;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "host:")) {
    GMB_ASSIGN_OR_RETURN(const uint64_t bytes, ParseSize(rest));
    if (bytes < uint64_t{2} << 20) {
      return absl::InvalidArgumentError(
          absl::StrCat("a host device has at least 2MiB; got ", Shown(text)));
    }
    device.kind = device::DeviceKind::kHost;
    device.host_bytes = bytes;
    return device;
  }
  device.kind = absl::ConsumePrefix(&rest, "ipc:") ? device::DeviceKind::kIpc
                                                   : device::DeviceKind::kVmm;
  if (!IsOrdinal(rest) && !IsUuid(rest)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a device is host:SIZE (such as host:4GiB), cuda:N, or a GPU's UUID as "
        "`nvidia-smi -L` "
        "prints it; ipc: before a GPU takes the compatibility kind; got ",
        Shown(text)));
  }
  device.name = std::string(rest);
  return device;
}

absl::Status NameDevices(std::vector<DeviceConfig>* devices) {
  int hosts = 0;
  for (DeviceConfig& device : *devices) {
    if (device.kind == device::DeviceKind::kHost)
      device.name = absl::StrCat("host-", hosts++);
  }
  for (auto device = devices->begin(); device != devices->end(); ++device) {
    const bool again = std::any_of(
        devices->begin(), device,
        [&](const DeviceConfig& other) { return other.name == device->name; });
    if (again)
      return absl::InvalidArgumentError(
          absl::StrCat("the device is given twice: ", device->name));
  }
  return absl::OkStatus();
}

}  // namespace gmb::broker
