#ifndef GMB_CLIENT_CLI_COMMANDS_TENANT_SET_COMMAND_H_
#define GMB_CLIENT_CLI_COMMANDS_TENANT_SET_COMMAND_H_

#include "client/cli/context.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace gmb::cli {

// Adds `set`, and `reset`, to `gmb tenant`.
void AddTenantSetCommand(CLI::App* tenant, Action* chosen);
void AddTenantResetCommand(CLI::App* tenant, Action* chosen);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_TENANT_SET_COMMAND_H_
