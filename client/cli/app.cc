#include "client/cli/app.h"

#include <exception>
#include <memory>
#include <ostream>

#include "CLI/CLI.hpp"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/usage_error.h"
#include "client/cli/context.h"
#include "client/cli/error_report.h"
#include "gmb/version.h"

namespace gmb::cli {
namespace {

constexpr char kFooter[] = R"(Examples:
  gmb status                                what each device pool holds
  gmb tenant set a --guarantee 25% --limit 60GiB
  gmb hold --tenant a --bytes 2GiB --for 30s   be a client for half a minute
  gmb run --tenant a -- python server.py    run a program on leased memory
  gmb demo                                  see everything at work, no set-up

`gmb COMMAND --help` explains a command. Exit codes: 0 done, 1 refused or found
wrong, 2 wrong usage, 3 no broker answers, 4 memory held wrong contents.)";

std::unique_ptr<CLI::App> BuildApp(Context* context, Action* chosen) {
  auto app = std::make_unique<CLI::App>(
      "Look after a GPU memory broker: who holds device memory, and how much "
      "each may have.",
      "gmb");
  app->require_subcommand(0, 1);
  app->fallthrough();  // options for all commands may follow the command
  app->set_version_flag("--version", GMB_VERSION_STRING);
  app->footer(kFooter);
  AddTextOption(app.get(), "--socket-dir", &context->socket_dir,
                "The broker's socket directory [GMB_SOCKET_DIR, else /run/gmb]")
      ->type_name("DIR");
  app->add_option_function<std::string>(
         "--output",
         [context](const std::string& form) { context->json = form == "json"; },
         "table for people, json for programs")
      ->check(CLI::IsMember({"table", "json"}))
      ->default_str("table")
      ->type_name("table|json");
  AddStatusCommand(app.get(), chosen);
  AddTenantCommands(app.get(), chosen);
  AddSessionCommands(app.get(), chosen);
  AddLeaseCommands(app.get(), chosen);
  AddPoolCommands(app.get(), chosen);
  AddReclaimCommand(app.get(), chosen);
  AddWhyCommand(app.get(), chosen);
  AddWatchCommand(app.get(), chosen);
  AddAuditCommand(app.get(), chosen);
  AddDoctorCommand(app.get(), chosen);
  AddHoldCommand(app.get(), chosen);
  AddRunCommand(app.get(), chosen);
  AddDemoCommand(app.get(), chosen);
  AddCompletionCommand(app.get(), chosen);
  AddVersionCommand(app.get(), chosen);
  return app;
}

ExitCode ParseAndRun(const std::vector<std::string>& arguments,
                     Context& context) {
  Action chosen;
  const std::unique_ptr<CLI::App> app = BuildApp(&context, &chosen);
  try {
    RefuseEmptyValues(arguments);
    // CLI11 takes them last first.
    app->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return ReportUsage(error, *app, context);
  }
  if (chosen == nullptr) return ReportNoCommand(*app, context);
  const absl::StatusOr<ExitCode> done = chosen(context);
  if (!done.ok()) return ReportError(done.status(), context);
  if (!context.out.flush())
    return ReportError(absl::UnknownError("cannot write the output"), context);
  return *done;
}

}  // namespace

ExitCode Run(const std::vector<std::string>& arguments,
             const Terminal& terminal, std::ostream& out, std::ostream& err) {
  Context context{.socket_dir = "",
                  .json = JsonAskedFor(arguments),
                  .terminal = terminal,
                  .out = out,
                  .err = err};
  try {
    return ParseAndRun(arguments, context);
  } catch (const std::exception&
               error) {  // CLI11, nlohmann and the standard library throw
    return ReportError(absl::InternalError(error.what()), context);
  }
}

}  // namespace gmb::cli
