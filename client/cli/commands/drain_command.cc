// `gmb drain`: has a broker end its sessions in order, and stop. It is told by
// a signal, so that it needs no gRPC and works where `on_stop` says detach.
#include <csignal>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/confirm.h"
#include "client/cli/upgrade/broker_signal.h"
#include "client/cli/upgrade/launch.h"
#include "client/session/broker_process.h"

namespace gmb::cli {
namespace {

constexpr int kDrain = SIGUSR1;
constexpr absl::Duration kLongestWait = absl::Hours(24);

struct DrainOptions {
  absl::Duration wait = absl::Minutes(5);
  bool yes = false;
};

absl::StatusOr<ExitCode> Drain(Context& context, const DrainOptions& options) {
  GMB_ASSIGN_OR_RETURN(const internal::BrokerProcess broker,
                       internal::FindBrokerProcess(context.socket_dir));
  GMB_RETURN_IF_ERROR(CheckUnderstands(broker, kDrain));
  if (!options.yes) {
    GMB_RETURN_IF_ERROR(Confirm(
        context,
        absl::StrCat("this stops gmbd, pid ", broker.pid,
                     ": every session is asked to end, and ended at the "
                     "broker's drain_deadline; what they lease is given back, "
                     "and a keeper is emptied")));
  }
  GMB_RETURN_IF_ERROR(Tell(broker, kDrain));
  if (!AwaitDeath(broker.pidfd.get(), options.wait)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "gmbd, pid ", broker.pid,
        ", is still draining, and goes on: wait longer with "
        "--wait, or have SIGTERM end its sessions at once: systemctl "
        "stop, or kill ",
        broker.pid));
  }
  if (context.json) {
    context.PrintJson(Json{{"pid", broker.pid}, {"stopped", true}});
  } else {
    context.out << "drained: gmbd, pid " << broker.pid << ", has stopped\n";
  }
  return ExitCode::kOk;
}

}  // namespace

void AddDrainCommand(CLI::App* app, Action* chosen) {
  CLI::App* const drain = app->add_subcommand(
      "drain", "End all sessions in order, and stop the broker");
  const auto options = std::make_shared<DrainOptions>();
  AddBoundedDurationOption(
      drain, "--wait", absl::ZeroDuration(), kLongestWait,
      [options](absl::Duration wait) { options->wait = wait; },
      "How long to wait for its end (5m); it goes on draining after that");
  drain->add_flag("--yes,-y", options->yes, "Do not ask");
  drain->footer(
      "Nothing more is granted, every session is asked to end, and those that "
      "are left\nat the broker's drain_deadline are ended. Then gmbd stops, "
      "whatever its on_stop\nsays, and its keeper is emptied. gmbd exits with "
      "4, after which its systemd unit\ndoes not start it again. A SIGTERM "
      "meanwhile ends the sessions at once.\n\n"
      "Run as gmbd's user, or root. To stop one pool alone: gmb pool drain. To "
      "see one\ntenant off: gmb tenant delete --wait.\n\n"
      "Example: gmb drain --yes");
  drain->callback([chosen, options] {
    *chosen = [options](Context& context) { return Drain(context, *options); };
  });
}

}  // namespace gmb::cli
