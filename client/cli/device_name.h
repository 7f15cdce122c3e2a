#ifndef GMB_CLIENT_CLI_DEVICE_NAME_H_
#define GMB_CLIENT_CLI_DEVICE_NAME_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/admin_client.h"

namespace gmb::cli {

inline constexpr char kDeviceForm[] = "UUID|cuda:N|all";

// How people name devices, beside their UUIDs: cuda:N is the GPU with that
// number, as this machine's driver counts for this process; all is every device.

// The UUID; empty for all, and for a name that is empty. INVALID_ARGUMENT: there
// is no such GPU here.
[[nodiscard]] absl::StatusOr<std::string> DeviceUuid(const std::string& name);
// The UUIDs of those that the broker has, for "all", or the one; an empty name is
// left as it is, for the broker to say whether it is clear.
[[nodiscard]] absl::StatusOr<std::vector<std::string>> DevicesNamed(
    const AdminClient& client, const std::string& name);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEVICE_NAME_H_
