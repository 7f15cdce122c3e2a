// `gmb upgrade`: prove, detach, start, and back again if need be.
#include "client/cli/upgrade/upgrade.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/admin_client.h"
#include "client/cli/upgrade/broker_signal.h"
#include "client/cli/upgrade/successor.h"

namespace gmb::cli {
namespace {

constexpr int kDetach = SIGUSR2;
constexpr char kCouldTakeOver[] = "could take over";  // of --check-handover
constexpr absl::Duration kCheckTime = absl::Seconds(60);
// The kernel takes its mappings apart first.
constexpr absl::Duration kDeathTime = absl::Seconds(60);
// Nobody waits for another way out.
constexpr absl::Duration kOldTime = absl::Minutes(2);
constexpr absl::Duration kPause = absl::Milliseconds(10);
constexpr absl::Duration kLongPause = absl::Seconds(1);

// From the moment on at which nobody serves, this process is not to be ended by
// a key or a lost terminal.
class Undisturbed {
 public:
  Undisturbed() {
    sigset_t ends;
    sigemptyset(&ends);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP})
      sigaddset(&ends, signal);
    pthread_sigmask(SIG_BLOCK, &ends, &before_);
  }
  ~Undisturbed() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  sigset_t before_{};
};

bool Answers(const std::string& socket_dir) {
  const absl::StatusOr<AdminClient> admin = AdminClient::Connect(socket_dir);
  return admin.ok() && admin->GetStatus(v1::GetStatusRequest()).ok();
}

// One that drains ends its sessions and empties its keeper, whatever it is told.
absl::Status CheckNotDraining(const std::string& socket_dir, pid_t pid) {
  const absl::StatusOr<AdminClient> admin = AdminClient::Connect(socket_dir);
  if (!admin.ok()) return absl::OkStatus();  // it is not known
  const auto status = admin->GetStatus(v1::GetStatusRequest());
  if (!status.ok() || !status->draining()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "nothing was changed: gmbd, pid ", pid,
      ", drains, and all sessions end with it. Start the new program after "
      "that: gmb drain waits for the end, and SIGTERM brings it about at once: "
      "systemctl stop, or kill ",
      pid));
}

// Until the one that was told to detach is dead. A drain that began after the
// last look at it goes on: its end is not to be taken for a detach.
absl::Status AwaitDetached(const std::string& socket_dir,
                           const internal::BrokerProcess& broker) {
  const absl::Time end = absl::Now() + kDeathTime;
  absl::Duration pause = kPause;
  while (!AwaitDeath(broker.pidfd.get(), pause)) {
    GMB_RETURN_IF_ERROR(CheckNotDraining(socket_dir, broker.pid));
    if (absl::Now() >= end) {
      return absl::DeadlineExceededError(absl::StrCat(
          "gmbd, pid ", broker.pid,
          ", was told to leave all to its keeper, and lives: is it stopped, or "
          "has its keeper not all (not_detached in its log)? Nothing was "
          "started. Should it end later, start it again"));
    }
    pause = std::min(2 * pause, kLongPause);
  }
  return absl::OkStatus();
}

// When it was told. FAILED_PRECONDITION: it drains, and goes on with that.
absl::StatusOr<absl::Time> Detach(const std::string& socket_dir,
                                  const internal::BrokerProcess& broker) {
  // All that was done before has taken its time.
  GMB_RETURN_IF_ERROR(CheckNotDraining(socket_dir, broker.pid));
  const absl::Time told = absl::Now();
  GMB_RETURN_IF_ERROR(Tell(broker, kDetach));
  GMB_RETURN_IF_ERROR(AwaitDetached(socket_dir, broker));
  return told;
}

// The pid of the one that serves. ABORTED: it is one that something else has
// started.
absl::StatusOr<pid_t> AwaitServing(const absl::Status& started,
                                   const std::string& socket_dir,
                                   Successor* next, absl::Duration wait) {
  GMB_RETURN_IF_ERROR(started);
  const absl::Time end = absl::Now() + wait;
  for (;;) {
    if (const auto ended = next->AwaitEnd(kPause); ended.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("it ended with ", *ended));
    }
    const absl::StatusOr<internal::BrokerProcess> found =
        internal::FindBrokerProcess(socket_dir);
    const bool other =
        found.ok() && next->pid() != 0 && found->pid != next->pid();
    if (other) {
      return absl::AbortedError(absl::StrCat(
          "something else has started a broker meanwhile, pid ", found->pid,
          ", which serves: what restarts gmbd here is to start the new one"));
    }
    if (found.ok() && Answers(socket_dir)) return found->pid;
    if (absl::Now() >= end) {
      return absl::DeadlineExceededError(
          absl::StrCat("it had ", absl::FormatDuration(wait), " for it"));
    }
  }
}

// The old one in the place of a new one that does not do.
absl::Status Return(const std::string& socket_dir, const StartedAs& as,
                    Successor* next, const absl::Status& why) {
  const absl::StatusOr<pid_t> serves =
      AwaitServing(next->StartOld(), socket_dir, next, kOldTime);
  if (serves.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the new gmbd does not serve: ", why.message(),
                     "; the old one serves again, pid ", *serves,
                     ", with all sessions. The broker's log may say more"));
  }
  return absl::InternalError(absl::StrCat(
      "NO BROKER SERVES: the new gmbd does not: ", why.message(),
      "; and the old one does not again: ", serves.status().message(),
      ". The keeper has all for the next one, for as long as its "
      "--abandon-after says, or its --linger where no client lives: see the "
      "broker's log, and start one as before: ",
      absl::StrJoin(as.launch.arguments, " ")));
}

}  // namespace

absl::StatusOr<Upgrade> Upgrade::Of(const std::string& socket_dir,
                                    const std::string& binary) {
  GMB_ASSIGN_OR_RETURN(internal::BrokerProcess broker,
                       internal::FindBrokerProcess(socket_dir));
  GMB_RETURN_IF_ERROR(CheckUnderstands(broker, kDetach));
  GMB_RETURN_IF_ERROR(CheckNotDraining(socket_dir, broker.pid));
  GMB_ASSIGN_OR_RETURN(StartedAs as, ReadStartedAs(broker));
  Upgrade upgrade(socket_dir, std::move(broker), std::move(as));
  std::error_code error;
  const std::string& its = upgrade.as_.launch.program;
  upgrade.program_ =
      binary.empty() ? its : std::filesystem::absolute(binary, error).string();
  const bool by_systemd = !upgrade.as_.unit.empty();
  if (by_systemd && upgrade.as_.unit.front() != "--user" && ::geteuid() != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        "systemd runs this broker (", upgrade.as_.unit.back(),
        "), and starts another one for root: run gmb upgrade as root"));
  }
  if (by_systemd && !binary.empty() &&
      !std::filesystem::equivalent(binary, its, error)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "systemd starts ", its, " (", upgrade.as_.unit.back(),
        "): put the new program there, by its package or with install(1), and "
        "leave --binary out"));
  }
  return upgrade;
}

Launch Upgrade::NewLaunch() const {
  Launch launch = as_.launch;
  launch.executable = -1;
  if (program_ != launch.program) launch.arguments.front() = program_;
  launch.program = program_;
  return launch;
}

absl::StatusOr<std::string> Upgrade::Check() const {
  Launch launch = NewLaunch();
  launch.arguments.emplace_back("--check-handover");
  absl::StatusOr<std::string> said = RunToEnd(std::move(launch), kCheckTime);
  // Some programs end well whatever they are told.
  if (said.ok() && !absl::StrContains(*said, kCouldTakeOver)) {
    return absl::FailedPreconditionError(
        absl::StrCat("nothing was changed: is ", program_,
                     " a gmbd? It did not say \"", kCouldTakeOver, "\""));
  }
  if (said.ok()) return said;
  return absl::Status(
      said.status().code(),
      absl::StrCat("nothing was changed, for ", program_,
                   " --check-handover failed: ", said.status().message()));
}

absl::StatusOr<Upgrade::Done> Upgrade::Carry(absl::Duration wait) const {
  const std::unique_ptr<Successor> next =
      as_.unit.empty() ? ByProcess(as_, NewLaunch()) : ByUnit(as_);
  GMB_RETURN_IF_ERROR(next->Save());
  const Undisturbed undisturbed;
  const absl::StatusOr<absl::Time> start = Detach(socket_dir_, broker_);
  if (absl::IsFailedPrecondition(start.status())) next->Forget();
  GMB_RETURN_IF_ERROR(start.status());
  const absl::StatusOr<pid_t> serves =
      AwaitServing(next->StartNew(), socket_dir_, next.get(), wait);
  if (absl::IsAborted(serves.status())) return serves.status();
  if (!serves.ok())
    return Return(socket_dir_, as_, next.get(), serves.status());
  next->Forget();
  return Done{.pid = *serves, .away = absl::Now() - *start};
}

}  // namespace gmb::cli
