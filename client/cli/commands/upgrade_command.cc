// `gmb upgrade`: another gmbd in the place of the one that runs.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/text/text.h"
#include "client/cli/upgrade/upgrade.h"

namespace gmb::cli {
namespace {

struct UpgradeOptions {
  std::string binary;  // empty: what is at the path of the one that runs
  absl::Duration wait = absl::Seconds(10);
  bool check = false;
};

absl::StatusOr<ExitCode> UpgradeBroker(Context& context,
                                       const UpgradeOptions& options) {
  GMB_ASSIGN_OR_RETURN(const Upgrade upgrade,
                       Upgrade::Of(context.socket_dir, options.binary));
  GMB_ASSIGN_OR_RETURN(const std::string checked, upgrade.Check());
  if (!context.json) context.out << checked << std::flush;
  Json json{{"program", upgrade.program()},
            {"old_pid", upgrade.old_pid()},
            {"checked", checked}};
  if (!options.check) {
    if (upgrade.as().hidden) {
      context.err << "gmb: gmbd hides its environment and outputs from its own "
                     "user: the new one gets those of this command; root's "
                     "command gives it the old one's\n";
    }
    GMB_ASSIGN_OR_RETURN(const Upgrade::Done done, upgrade.Carry(options.wait));
    json["pid"] = done.pid;
    json["away_seconds"] = absl::ToDoubleSeconds(done.away);
    if (!context.json) {
      context.out << "upgraded: gmbd, pid " << done.pid
                  << ", serves in the place of pid " << upgrade.old_pid()
                  << "; nobody served for " << DurationText(done.away) << '\n';
    }
  }
  if (context.json) context.PrintJson(json);
  return ExitCode::kOk;
}

}  // namespace

void AddUpgradeCommand(CLI::App* app, Action* chosen) {
  CLI::App* const upgrade = app->add_subcommand(
      "upgrade", "Start another gmbd in the place of the one that runs");
  const auto options = std::make_shared<UpgradeOptions>();
  AddTextOption(upgrade, "--binary", &options->binary,
                "The new program; without it, what is at the path of the one "
                "that runs")
      ->type_name("PATH");
  upgrade->add_flag("--check", options->check,
                    "Only see whether it could take over");
  AddBoundedDurationOption(
      upgrade, "--wait", absl::Milliseconds(100), absl::Minutes(5),
      [options](absl::Duration wait) { options->wait = wait; },
      "How long the new one has until it serves (10s)");
  upgrade->footer(
      R"(For a gmbd with a keeper: sessions, leases and contents go on. First the new
program proves that it reads configuration, database and journal; if it does
not, nothing is changed. Then the old one leaves all to the keeper, whatever its
on_stop says, and the new one is started as it was. If that does not serve in
time, the old one is started again, and the exit code is 1.

Run as root, or as gmbd's user. Where systemd runs gmbd, run as root: systemd
starts the new one. Install it first, and leave --binary out.

Example: gmb upgrade --binary ./gmbd-new)");
  upgrade->callback([chosen, options] {
    *chosen = [options](Context& context) {
      return UpgradeBroker(context, *options);
    };
  });
}

}  // namespace gmb::cli
