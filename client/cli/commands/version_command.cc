// `gmb version`.
#include "CLI/CLI.hpp"
#include "base/commit.h"
#include "client/cli/commands/commands.h"
#include "client/cli/version_text.h"
#include "gmb/version.h"

namespace gmb::cli {
namespace {

absl::StatusOr<ExitCode> PrintVersion(Context& context) {
  if (context.json) {
    context.PrintJson(
        Json{{"version", GMB_VERSION_STRING}, {"commit", base::Commit()}});
  } else {
    context.out << "gmb " << VersionText() << '\n';
  }
  return ExitCode::kOk;
}

}  // namespace

void AddVersionCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command =
      app->add_subcommand("version", "Show this command's version");
  command->footer(
      "The broker's version is in `gmb status`.\n\nExample: gmb version");
  command->callback([chosen] { *chosen = &PrintVersion; });
}

}  // namespace gmb::cli
