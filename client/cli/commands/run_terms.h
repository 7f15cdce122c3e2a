#ifndef GMB_CLIENT_CLI_COMMANDS_RUN_TERMS_H_
#define GMB_CLIENT_CLI_COMMANDS_RUN_TERMS_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/commands/launcher.h"
#include "gmb/client.h"

namespace gmb::cli {

// On which terms a program gets memory, in one line for the person who starts
// it: the tenant, how much it can have, and whether it lends it while it is
// idle, or why not. Asks the broker.
[[nodiscard]] absl::StatusOr<std::string> RunTerms(Client& client,
                                                   const RunOptions& options);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_RUN_TERMS_H_
