#ifndef GMB_CLIENT_CLI_COMMANDS_COMMANDS_H_
#define GMB_CLIENT_CLI_COMMANDS_COMMANDS_H_

#include "client/cli/context.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace gmb::cli {

// Each adds one command (with those below it) to `app`. Parsing a command line
// that names it puts what is to be done into `*chosen`, which must outlive
// `app`.
void AddStatusCommand(CLI::App* app, Action* chosen);
void AddTopCommand(CLI::App* app, Action* chosen);
void AddTenantCommands(CLI::App* app, Action* chosen);
void AddSessionCommands(CLI::App* app, Action* chosen);
void AddLeaseCommands(CLI::App* app, Action* chosen);
void AddPoolCommands(CLI::App* app, Action* chosen);
void AddQuotaCommand(CLI::App* app, Action* chosen);
void AddReclaimCommand(CLI::App* app, Action* chosen);
void AddApplyCommand(CLI::App* app, Action* chosen);
void AddAuditCommand(CLI::App* app, Action* chosen);
void AddExportCommand(CLI::App* app, Action* chosen);
void AddWatchCommand(CLI::App* app, Action* chosen);
void AddMetricsCommand(CLI::App* app, Action* chosen);
void AddWhyCommand(CLI::App* app, Action* chosen);
void AddDoctorCommand(CLI::App* app, Action* chosen);
void AddDrainCommand(CLI::App* app, Action* chosen);
void AddUpgradeCommand(CLI::App* app, Action* chosen);
void AddKeeperCommands(CLI::App* app, Action* chosen);
void AddHoldCommand(CLI::App* app, Action* chosen);
void AddRunCommand(CLI::App* app, Action* chosen);
void AddDemoCommand(CLI::App* app, Action* chosen);
void AddHelpCommand(CLI::App* app, Action* chosen);
void AddDebugCommands(CLI::App* app, Action* chosen);
void AddUsageCommand(CLI::App* app, Action* chosen);
void AddVersionCommand(CLI::App* app, Action* chosen);
// Completes the commands that `app` has, those added later as well.
void AddCompletionCommand(CLI::App* app, Action* chosen);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_COMMANDS_H_
