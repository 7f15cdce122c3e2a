// `gmb top`: the live view, or one look as text.
#include <cstdlib>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/device_name.h"
#include "client/cli/top/controls.h"
#include "client/cli/top/frame.h"
#include "client/cli/top/live.h"
#include "client/cli/top/source.h"
#include "client/session/socket_dir.h"

namespace gmb::cli {
namespace {

struct TopOptions {
  top::Choice choice;
  absl::Duration delay = absl::Seconds(2);
  bool once = false;
};

// A file has no width: that of $COLUMNS, or enough for the wide columns.
int ColumnsOfText(const Terminal& terminal) {
  if (terminal.is_tty) return terminal.columns;
  const char* const text = std::getenv("COLUMNS");
  int columns = 0;
  if (text != nullptr && absl::SimpleAtoi(text, &columns) && columns >= 40 &&
      columns <= 1000) {
    return columns;
  }
  return 160;
}

absl::StatusOr<ExitCode> ShowOnce(Context& context, const top::Scene& scene) {
  GMB_ASSIGN_OR_RETURN(const AdminClient client,
                       AdminClient::Connect(context.socket_dir));
  GMB_ASSIGN_OR_RETURN(top::Look look, top::Take(client));
  GMB_RETURN_IF_ERROR(top::CheckIsThere(look, scene.choice.device));
  if (context.json) {
    Json json;
    json["status"] = ToJson(look.status);
    json["tenants"] = ListToJson(look.tenants)["tenants"];
    json["sessions"] = ListToJson(look.sessions)["sessions"];
    context.PrintJson(json);
    return ExitCode::kOk;
  }
  top::Sight sight;
  sight.look = std::make_shared<const top::Look>(std::move(look));
  Terminal terminal = context.terminal;
  terminal.columns = ColumnsOfText(terminal);
  for (const std::string& line : top::DrawOnce(sight, scene, terminal))
    context.out << line << '\n';
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Top(Context& context, const TopOptions& options) {
  top::Scene scene;
  scene.choice = options.choice;
  scene.delay = options.delay;
  scene.socket_dir = internal::ResolveSocketDir(context.socket_dir);
  scene.now = absl::Now();
  if (internal::IsTenantDirectory(scene.socket_dir)) {
    return absl::FailedPreconditionError(absl::StrCat(
        scene.socket_dir,
        " is a tenant's own directory, and this is for operators: `gmb quota` "
        "shows what the tenant has"));
  }
  GMB_ASSIGN_OR_RETURN(scene.choice.device, DeviceUuid(options.choice.device));
  if (options.once || context.json || !context.terminal.is_tty)
    return ShowOnce(context, scene);
  return top::RunLive(context, std::move(scene));
}

}  // namespace

void AddTopCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "top", "Watch pools, tenants and processes live, the largest first");
  const auto options = std::make_shared<TopOptions>();
  command->add_flag("--once", options->once,
                    "Print one look as text, as without a terminal");
  AddBoundedDurationOption(
      command, "--delay,-d", top::kLeastDelay, top::kMostDelay,
      [options](absl::Duration delay) { options->delay = delay; },
      "Between two looks [2s]");
  AddParsedOption(
      command, "--sort",
      [options](const std::string& text) {
        const std::optional<top::Sort> sort = top::SortNamed(text);
        if (!sort.has_value()) {
          return absl::InvalidArgumentError(
              "write bytes, change, evicted, waiting, idle or name; got \"" +
              text + "\"");
        }
        options->choice.sort = *sort;
        return absl::OkStatus();
      },
      "What comes first [bytes]")
      ->type_name("bytes|change|evicted|waiting|idle|name");
  AddTextOption(command, "--tenant", &options->choice.tenant_part,
                "Only tenants with this in their names [all]")
      ->type_name("TEXT");
  AddTextOption(command, "--device", &options->choice.device,
                "Of this device alone [all, added up]")
      ->type_name(kDeviceForm);
  command->footer(
      "Keys are as in top: q ends it, h shows all of them.\n\n"
      "Example: gmb top --sort waiting");
  command->callback([chosen, options] {
    *chosen = [options](Context& context) { return Top(context, *options); };
  });
}

}  // namespace gmb::cli
