// gmbd: the GPU memory broker.
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "broker/config/config.h"
#include "broker/daemon/check.h"
#include "broker/daemon/daemon.h"
#include "broker/daemon/start_advice.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

// docs/operations.md explains them.
enum ExitCode { kStopped = 0, kFailed = 1, kUsage = 2, kStoppedAtOnce = 3 };

// The signals that a broker obeys, taken by the main thread alone: those that
// stop it, and SIGHUP. (A lost terminal is no reason to stop: the file is read
// again, and nothing has changed in it.)
class Signals {
 public:
  // Before the first thread starts, so that all of them inherit the mask.
  Signals() {
    sigemptyset(&stop_);
    sigaddset(&stop_, SIGTERM);
    sigaddset(&stop_, SIGINT);
    all_ = stop_;
    sigaddset(&all_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &all_, nullptr);
    signal(SIGPIPE, SIG_IGN);
  }

  // Returns at one that stops it.
  void Wait(const std::function<void()>& reload) {
    for (;;) {
      int number = 0;
      if (sigwait(&all_, &number) != 0) continue;
      if (number != SIGHUP) return;
      reload();
    }
  }
  // For one that stops it. False when none came in time.
  bool WaitFor(absl::Duration duration) {
    const timespec timeout = absl::ToTimespec(duration);
    return sigtimedwait(&stop_, nullptr, &timeout) > 0;
  }

 private:
  sigset_t stop_;
  sigset_t all_;
};

// First of all: one that comes while the broker starts has the file read once
// more afterwards. The other signals stop a start that hangs.
void BlockHangup() {
  sigset_t hangup;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &hangup, nullptr);
}

// Until the last tenant's session has ended, the deadline, or a second signal.
ExitCode Drain(Daemon* daemon, Signals* signals) {
  daemon->BeginDrain();
  const absl::Time end = absl::Now() + daemon->drain_deadline();
  while (!daemon->IsEmpty()) {
    if (absl::Now() >= end) {
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

int Main(int argc, char** argv) {
  BlockHangup();
  const Flags flags = ParseFlags(argc, argv);
  if (flags.exit_code >= 0) {
    std::fputs(flags.text.c_str(), flags.exit_code == 0 ? stdout : stderr);
    return flags.exit_code;
  }
  absl::StatusOr<BrokerConfig> config = LoadConfig(flags);
  if (!config.ok()) {
    std::fprintf(stderr, "gmbd: %s\n",
                 std::string(config.status().message()).c_str());
    return kUsage;
  }
  // A file that may not grow is an error like a full disk.
  signal(SIGXFSZ, SIG_IGN);
  if (flags.check) return Check(*config) ? kStopped : kFailed;
  ConfigureLog(config->log);
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
  if (!daemon.ok()) {
    LogEvent(LogLevel::kError, "cannot_start",
             {{"message", WithAdvice(daemon.status())}});
    // With a keeper the parts of the daemon are still there.
    if (has_keeper) std::_Exit(kFailed);
    return kFailed;
  }
  signals.Wait([&] { (*daemon)->Reload(); });
  if (detach) {
    LogEvent(LogLevel::kInfo, "detached",
             {{"message", "the keeper has all for the next broker"}});
    std::_Exit(kStopped);
  }
  const ExitCode code = Drain(daemon->get(), &signals);
  daemon->reset();
  LogEvent(LogLevel::kInfo, "stopped");
  return code;
}

}  // namespace
}  // namespace gmb::broker

int main(int argc, char** argv) { return gmb::broker::Main(argc, argv); }
