// The commands of gmb, in the order of its help.
#include "client/cli/app.h"

#include "client/cli/commands/commands.h"

namespace gmb::cli {
namespace {

constexpr char kFooter[] = R"(Examples:
  gmb status                                what each device pool holds
  gmb top                                   the same live, and by tenant and process
  gmb tenant set a --guarantee 25% --limit 60GiB
  gmb hold --tenant a --bytes 2GiB --for 30s   be a client for half a minute
  gmb run --tenant a -- python server.py    run a program on leased memory
  gmb demo                                  see everything at work, no set-up

`gmb COMMAND --help` explains a command. Exit codes: 0 done, 1 refused or found
wrong, 2 wrong usage, 3 no broker answers, 4 memory held wrong contents.)";

void AddCommands(CLI::App* app, Action* chosen) {
  AddStatusCommand(app, chosen);
  AddTopCommand(app, chosen);
  AddTenantCommands(app, chosen);
  AddQuotaCommand(app, chosen);
  AddSessionCommands(app, chosen);
  AddLeaseCommands(app, chosen);
  AddPoolCommands(app, chosen);
  AddReclaimCommand(app, chosen);
  AddWhyCommand(app, chosen);
  AddWatchCommand(app, chosen);
  AddMetricsCommand(app, chosen);
  AddUsageCommand(app, chosen);
  AddAuditCommand(app, chosen);
  AddExportCommand(app, chosen);
  AddApplyCommand(app, chosen);
  AddDoctorCommand(app, chosen);
  AddDebugCommands(app, chosen);
  AddDrainCommand(app, chosen);
  AddUpgradeCommand(app, chosen);
  AddKeeperCommands(app, chosen);
  AddHoldCommand(app, chosen);
  AddRunCommand(app, chosen);
  AddDemoCommand(app, chosen);
  AddCompletionCommand(app, chosen);
  AddVersionCommand(app, chosen);
  AddHelpCommand(app, chosen);
}

}  // namespace

Program GmbProgram() {
  return {.name = "gmb",
          .description =
              "Look after a GPU memory broker: who holds device memory, and "
              "how much each may have.",
          .footer = kFooter,
          .add = AddCommands};
}

ExitCode Run(const std::vector<std::string>& arguments,
             const Terminal& terminal, std::ostream& out, std::ostream& err) {
  return RunProgram(GmbProgram(), arguments, terminal, out, err);
}

}  // namespace gmb::cli
