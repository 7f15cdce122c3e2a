// `gmb drain`: has a broker end its sessions in order, and stop. It is told by
// a signal, so that it needs no gRPC and works where `on_stop` says detach.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/confirm.h"
#include "client/session/broker_process.h"

namespace gmb::cli {
namespace {

constexpr int kDrain = SIGUSR1;
constexpr absl::Duration kLongestWait = absl::Hours(24);

struct DrainOptions {
  absl::Duration wait = absl::Minutes(5);
  bool yes = false;
};

bool Blocks(const std::filesystem::path& status_file) {
  std::ifstream status(status_file);
  for (std::string line; std::getline(status, line);) {
    absl::string_view text = line;
    uint64_t blocked = 0;
    if (absl::ConsumePrefix(&text, "SigBlk:") &&
        absl::SimpleHexAtoi(absl::StripAsciiWhitespace(text), &blocked))
      return (blocked >> (kDrain - 1) & 1) != 0;
  }
  return false;
}

// A process that does not wait for the signal would die of it. The thread that
// waits shows it as not blocked, and all others as blocked.
absl::Status CheckUnderstands(pid_t pid) {
  std::error_code none;
  std::filesystem::directory_iterator thread(
      absl::StrCat("/proc/", pid, "/task"), none);
  const std::filesystem::directory_iterator end;
  for (; !none && thread != end; thread.increment(none)) {
    if (Blocks(thread->path() / "status")) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "pid ", pid,
      " is no gmbd that can be told to drain: it is of an older release, or "
      "its /proc is hidden. SIGTERM stops it as its on_stop says"));
}

absl::Status Tell(const internal::BrokerProcess& broker) {
  if (::syscall(SYS_pidfd_send_signal, broker.pidfd.get(), kDrain, nullptr,
                0) == 0)
    return absl::OkStatus();
  if (errno == EPERM) {
    return absl::PermissionDeniedError(
        absl::StrCat("gmbd's own user may have it stop, and root: pid ",
                     broker.pid, " runs as uid ", broker.uid));
  }
  return absl::ErrnoToStatus(
      errno, absl::StrCat("cannot signal gmbd, pid ", broker.pid));
}

absl::Status AwaitEnd(const internal::BrokerProcess& broker,
                      absl::Duration wait) {
  const absl::Time end = absl::Now() + wait;
  for (;;) {
    pollfd ended{broker.pidfd.get(), POLLIN, 0};
    const auto left = absl::ToInt64Milliseconds(end - absl::Now());
    const int ready = ::poll(
        &ended, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR)
      return absl::ErrnoToStatus(errno, "cannot wait for gmbd");
    if (absl::Now() < end) continue;
    return absl::DeadlineExceededError(
        absl::StrCat("gmbd, pid ", broker.pid,
                     ", is still draining, and goes on: wait longer with "
                     "--wait, or lower its drain_deadline"));
  }
}

absl::StatusOr<ExitCode> Drain(Context& context, const DrainOptions& options) {
  GMB_ASSIGN_OR_RETURN(const internal::BrokerProcess broker,
                       internal::FindBrokerProcess(context.socket_dir));
  GMB_RETURN_IF_ERROR(CheckUnderstands(broker.pid));
  if (!options.yes) {
    GMB_RETURN_IF_ERROR(Confirm(
        context,
        absl::StrCat("this stops gmbd, pid ", broker.pid,
                     ": every session is asked to end, and ended at the "
                     "broker's drain_deadline; what they lease is given back, "
                     "and a keeper is emptied")));
  }
  GMB_RETURN_IF_ERROR(Tell(broker));
  GMB_RETURN_IF_ERROR(AwaitEnd(broker, options.wait));
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
      "4, after which its systemd unit\ndoes not start it again. A second "
      "SIGTERM to gmbd ends the sessions at once.\n\n"
      "Run as gmbd's user, or root. To stop one pool alone: gmb pool drain. To "
      "see one\ntenant off: gmb tenant delete --wait.\n\n"
      "Example: gmb drain --yes");
  drain->callback([chosen, options] {
    *chosen = [options](Context& context) { return Drain(context, *options); };
  });
}

}  // namespace gmb::cli
