#ifndef GMB_CLIENT_CLI_COMMANDS_EACH_DEVICE_H_
#define GMB_CLIENT_CLI_COMMANDS_EACH_DEVICE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/cli/admin_client.h"
#include "client/cli/context.h"
#include "client/cli/text/json.h"

namespace gmb::cli {

// Does something with each device that `name` means (device_name.h), one after
// the other until one fails. `act` prints for people, and returns the answer as
// JSON, which is the output, or, with "all", {"devices": [{"device": UUID, ...}]}.
[[nodiscard]] absl::StatusOr<ExitCode> OnEachDevice(
    Context& context, const std::string& name,
    absl::FunctionRef<absl::StatusOr<Json>(const AdminClient&,
                                           const std::string& uuid)>
        act);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_EACH_DEVICE_H_
