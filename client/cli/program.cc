// From main() to a command and back to an exit code.
#include "client/cli/program.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/usage_error.h"
#include "client/cli/error_report.h"
#include "client/cli/version_text.h"

namespace gmb::cli {
namespace {

std::unique_ptr<CLI::App> BuildApp(const Program& program, Context* context,
                                   Action* chosen) {
  auto app = std::make_unique<CLI::App>(program.description, program.name);
  app->require_subcommand(0, 1);
  app->fallthrough();  // options for all commands may follow the command
  app->set_version_flag("--version",
                        absl::StrCat(program.name, " ", VersionText()));
  app->footer(program.footer);
  AddTextOption(app.get(), "--socket-dir", &context->socket_dir,
                "The broker's socket directory [GMB_SOCKET_DIR, else /run/gmb]")
      ->type_name("DIR");
  app->add_flag_callback(
      "--json", [context] { context->json = true; }, "As --output json");
  app->add_option_function<std::string>(
         "--output,-o",
         [context](const std::string& form) { context->json = form == "json"; },
         "table for people, json for programs")
      ->check(CLI::IsMember({"table", "json"}))
      ->default_str("table")
      ->type_name("table|json");
  program.add(app.get(), chosen);
  return app;
}

ExitCode AllWritten(ExitCode done, const Context& context) {
  if (context.out.flush()) return done;
  return ReportError(absl::UnknownError("cannot write the output"), context);
}

ExitCode ParseAndRun(const Program& program,
                     const std::vector<std::string>& arguments,
                     Context& context) {
  Action chosen;
  const std::unique_ptr<CLI::App> app = BuildApp(program, &context, &chosen);
  try {
    RefuseEmptyValues(arguments);
    // CLI11 takes them last first.
    app->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return AllWritten(ReportUsage(error, *app, context), context);
  }
  if (chosen == nullptr) return ReportNoCommand(*app, context);
  const absl::StatusOr<ExitCode> done = chosen(context);
  if (!done.ok()) return ReportError(done.status(), context);
  return AllWritten(*done, context);
}

}  // namespace

ExitCode RunProgram(const Program& program,
                    const std::vector<std::string>& arguments,
                    const Terminal& terminal, std::ostream& out,
                    std::ostream& err) {
  Context context{.socket_dir = "",
                  .json = JsonAskedFor(arguments),
                  .terminal = terminal,
                  .out = out,
                  .err = err};
  try {
    return ParseAndRun(program, arguments, context);
  } catch (const std::exception&
               error) {  // CLI11, nlohmann and the standard library throw
    return ReportError(absl::InternalError(error.what()), context);
  }
}

int MainOf(const Program& program, int argc, char** argv) {
  // gRPC need not log: its errors are in those that the commands report.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there are no threads yet
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return static_cast<int>(RunProgram(
      program, arguments, Terminal::Of(STDOUT_FILENO), std::cout, std::cerr));
}

}  // namespace gmb::cli
