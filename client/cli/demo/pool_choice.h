#ifndef GMB_CLIENT_CLI_DEMO_POOL_CHOICE_H_
#define GMB_CLIENT_CLI_DEMO_POOL_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/commands/demo_options.h"
#include "client/device_probe.h"

namespace gmb::cli {

// On which memory the demo runs, and how much of it.
struct PoolChoice {
  // --device ... [--pool ...] --host-pool ...
  std::vector<std::string> broker_flags;
  std::string why;  // for people
};

// `device` is one of the forms of CheckPoolName.
// "auto" is the first GPU that works here, otherwise as much host memory as is
// easily spared.
[[nodiscard]] absl::StatusOr<PoolChoice> ChoosePool(
    const std::string& device, const internal::DeviceProbe& probe,
    uint64_t available_host_bytes);

// The memory that this process could still use: of the machine, within its
// control group.
[[nodiscard]] uint64_t AvailableHostBytes();

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_POOL_CHOICE_H_
