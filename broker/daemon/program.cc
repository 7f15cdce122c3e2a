// The program gmbd, from its command line to its exit code.
#include "broker/daemon/program.h"

#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "broker/config/config.h"
#include "broker/daemon/check.h"
#include "broker/daemon/check_handover.h"
#include "broker/daemon/daemon.h"
#include "broker/daemon/out_of_memory.h"
#include "broker/daemon/signals.h"
#include "broker/daemon/start_advice.h"
#include "broker/daemon/threads_or_error.h"
#include "broker/daemon/watchdog.h"
#include "broker/log/logging.h"
#include "google/protobuf/stubs/logging.h"
#include "ipc/service_manager.h"

namespace gmb::broker {
namespace {

// docs/operations.md explains them.
enum ExitCode {
  kStopped = 0,
  kFailed = 1,
  kUsage = 2,
  kStoppedAtOnce = 3,
  kDrained = 4,  // on an operator's word: nobody is to start it again
};

// Without its word the manager ends the broker, or gives its start up.
void Tell(const ipc::ServiceManager& manager, const std::string& lines) {
  const absl::Status told = manager.Say(lines);
  if (told.ok()) return;
  LogEvent(LogLevel::kWarning, "manager_not_told",
           {{"message", told.message()}});
}

// Beside the drain's deadline: the time that the parts of the daemon take.
constexpr absl::Duration kTimeToEnd = absl::Minutes(1);
constexpr std::chrono::seconds kTimeToSettle{1};

std::string Stopping(absl::Duration within) {
  return absl::StrCat("STOPPING=1\nEXTEND_TIMEOUT_USEC=",
                      absl::ToInt64Microseconds(within));
}

// Until the last tenant's session has ended, the deadline, or a second signal.
ExitCode Drain(Daemon* daemon, Signals* signals) {
  const base::Deadline end(daemon->drain_deadline());
  while (!daemon->IsEmpty()) {
    if (end.IsOver()) {
      LogEvent(LogLevel::kWarning, "drain_deadline",
               {{"message", "sessions are left; they are ended now"}});
      return kStopped;
    }
    if (signals->WaitFor(absl::Milliseconds(50))) {
      LogEvent(LogLevel::kWarning, "stopping_at_once",
               {{"message", "second signal"}});
      return kStoppedAtOnce;
    }
  }
  return kStopped;
}

// All but a detach that would leave too little to the next broker.
StopSignal AwaitStop(Daemon* daemon, Signals* signals) {
  for (;;) {
    StopSignal stop = signals->Wait([daemon] { daemon->Reload(); });
    if (stop.number != kDetachSignal || daemon->KeeperHasAll()) return stop;
    LogEvent(LogLevel::kWarning, "not_detached",
             {{"message",
               absl::StrCat("there is no keeper that has all, so sessions "
                            "would end with this process; asked for by ",
                            stop.sender)}});
  }
}

// Where there is no keeper that has all, clients are asked to end in order: the
// next broker would find nothing of them.
bool Detaches(const StopSignal& stop, bool detach_on_stop,
              const Daemon& daemon) {
  if (stop.number == kDetachSignal) return true;  // AwaitStop has seen to it
  if (stop.number == kDrainSignal || !detach_on_stop) return false;
  if (daemon.KeeperHasAll()) return true;
  LogEvent(LogLevel::kWarning, "not_detached",
           {{"message",
             absl::StrCat("there is no keeper that has all, so the next broker "
                          "would find no session: it drains, as with on_stop: "
                          "drain; asked for by ",
                          stop.sender)}});
  return false;
}

// It has lines of its own about each message whose text is not UTF-8, as many as
// anybody sends. Its last words are kept.
void SayOfProtobuf(google::protobuf::LogLevel level, const char* file, int line,
                   const std::string& message) {
  if (level != google::protobuf::LOGLEVEL_FATAL) return;
  std::fprintf(stderr, "gmbd: protobuf: %s:%d: %s\n", file, line,
               message.c_str());
}

int CannotStart(const absl::Status& why, bool has_keeper) {
  LogEvent(LogLevel::kError, "cannot_start", {{"message", WithAdvice(why)}});
  // With a keeper the parts of the daemon are still there: taken apart, they
  // would end what the next broker can adopt.
  if (has_keeper) std::_Exit(kFailed);
  return kFailed;
}

// Takes back what was refused, unless the disk does not answer: that is then
// left to the next broker, as by a death.
void SettleRefusedInTime(Daemon* daemon) {
  const auto settled = std::make_shared<std::promise<void>>();
  const std::future<void> done = settled->get_future();
  const absl::Status begun = ThreadsOrError([&] {
    // The end of the process ends it.
    std::thread([daemon, settled] {
      daemon->state().store()->SettleRefused();
      settled->set_value();
    }).detach();
    return absl::OkStatus();
  });
  if (begun.ok() && done.wait_for(kTimeToSettle) == std::future_status::ready) {
    return;
  }
  LogEvent(LogLevel::kWarning, "not_settled",
           {{"message",
             "the disk does not answer: what was refused and is on it all the "
             "same comes into force with the next broker"}});
}

// The last step of the start, and then until a signal ends it.
int Serve(std::unique_ptr<Daemon> daemon, bool has_keeper, bool detach,
          Signals* signals) {
  const ipc::ServiceManager manager = ipc::ServiceManager::FromEnvironment();
  std::optional<Watchdog> watchdog;
  const absl::Status watched = ThreadsOrError([&] {
    watchdog.emplace(&manager, [&daemon](absl::Duration patience) {
      return daemon->LookAlive(patience);
    });
    return absl::OkStatus();
  });
  if (!watched.ok()) return CannotStart(watched, has_keeper);
  Tell(manager, "READY=1");
  watchdog->Begin();
  const StopSignal stop = AwaitStop(daemon.get(), signals);
  const bool is_drain = stop.number == kDrainSignal;
  if (Detaches(stop, detach, *daemon)) {
    Tell(manager, "STOPPING=1");
    SettleRefusedInTime(daemon.get());
    LogEvent(LogLevel::kInfo, "detached",
             {{"message",
               absl::StrCat("the keeper has all for the next broker; asked for "
                            "by ",
                            stop.sender)}});
    std::_Exit(kStopped);
  }
  Tell(manager, Stopping(daemon->drain_deadline() + kTimeToEnd));
  daemon->BeginDrain();  // whatever the disk does
  if (is_drain) daemon->state().RecordDrain(stop.sender);
  const ExitCode code = Drain(daemon.get(), signals);
  watchdog.reset();
  daemon.reset();
  LogEvent(LogLevel::kInfo, "stopped");
  return code == kStopped && is_drain ? kDrained : code;
}

// A report that nobody can read is a failure.
int Printed(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  std::fputs("gmbd: cannot write the output\n", stderr);
  return exit_code == kStopped ? kFailed : exit_code;
}

}  // namespace

int RunProgram(int argc, char** argv) {
  EndWhenOutOfMemory();
  // Debian's Abseil, made for debugging too, compares the order of all locks
  // that gRPC takes, at each of them: some percent of what a lease costs.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  BlockForLater();
  const Flags flags = ParseFlags(argc, argv);
  if (flags.exit_code >= 0) {
    std::fputs(flags.text.c_str(), flags.exit_code == 0 ? stdout : stderr);
    return Printed(flags.exit_code);
  }
  absl::StatusOr<BrokerConfig> config = LoadConfig(flags);
  if (!config.ok()) {
    std::fprintf(stderr, "gmbd: %s\n",
                 std::string(config.status().message()).c_str());
    return kUsage;
  }
  // A file that may not grow is an error like a full disk.
  signal(SIGXFSZ, SIG_IGN);
  if (flags.check) return Printed(Check(*config) ? kStopped : kFailed);
  if (flags.check_handover)
    return Printed(CheckHandover(*config) ? kStopped : kFailed);
  ConfigureLog(config->log);
  google::protobuf::SetLogHandler(&SayOfProtobuf);
  for (const std::string& warning : config->warnings) {
    LogEvent(LogLevel::kWarning, "configuration", {{"message", warning}});
  }
  const bool has_keeper = !config->keeper_socket.empty();
  const bool detach = config->detach_on_stop;
  // So that no process of this user takes what is kept by pidfd_getfd, and
  // nothing of it is in a core dump.
  if (has_keeper && ::prctl(PR_SET_DUMPABLE, 0) != 0) {
    LogEvent(LogLevel::kError, "cannot_start",
             {{"message", "prctl PR_SET_DUMPABLE failed"}});
    return kFailed;
  }
  Signals signals;
  absl::StatusOr<std::unique_ptr<Daemon>> daemon =
      Daemon::Start(*std::move(config), flags);
  if (!daemon.ok()) return CannotStart(daemon.status(), has_keeper);
  return Serve(*std::move(daemon), has_keeper, detach, &signals);
}

}  // namespace gmb::broker
