#ifndef GMB_CLIENT_CLI_COMMANDS_QUOTA_COMMAND_H_
#define GMB_CLIENT_CLI_COMMANDS_QUOTA_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/context.h"
#include "gmb/options.h"

namespace gmb::cli {

// `gmb quota`, and `gmb status` in a tenant's own directory. As AskOwnQuota.
[[nodiscard]] absl::StatusOr<ExitCode> ShowOwnQuota(const Context& context,
                                                    const std::string& tenant,
                                                    ClientOptions options);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_QUOTA_COMMAND_H_
