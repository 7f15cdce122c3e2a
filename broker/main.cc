// gmbd: the GPU memory broker.
#include <signal.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "broker/config/config.h"
#include "broker/daemon/check.h"
#include "broker/daemon/daemon.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

// docs/operations.md explains them.
enum ExitCode { kStopped = 0, kFailed = 1, kUsage = 2, kStoppedAtOnce = 3 };

// The signals that stop a broker, taken by the main thread alone.
class StopSignals {
 public:
  // Before the first thread starts, so that all of them inherit the mask.
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);  // a lost terminal is no reason to stop
  }

  void Wait() {
    int number = 0;
    while (sigwait(&set_, &number) != 0) {
    }
  }
  // False when none came in time.
  bool WaitFor(absl::Duration duration) {
    const timespec timeout = absl::ToTimespec(duration);
    return sigtimedwait(&set_, nullptr, &timeout) > 0;
  }

 private:
  sigset_t set_;
};

// Until the last tenant's session has ended, the deadline, or a second signal.
ExitCode Drain(Daemon* daemon, absl::Duration deadline, StopSignals* signals) {
  daemon->BeginDrain();
  const absl::Time end = absl::Now() + deadline;
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
  StopSignals signals;
  const absl::Duration drain_deadline = config->drain_deadline;
  absl::StatusOr<std::unique_ptr<Daemon>> daemon =
      Daemon::Start(*std::move(config));
  if (!daemon.ok()) {
    LogEvent(LogLevel::kError, "cannot_start",
             {{"message", std::string(daemon.status().message())}});
    return kFailed;
  }
  signals.Wait();
  const ExitCode code = Drain(daemon->get(), drain_deadline, &signals);
  daemon->reset();
  LogEvent(LogLevel::kInfo, "stopped");
  return code;
}

}  // namespace
}  // namespace gmb::broker

int main(int argc, char** argv) { return gmb::broker::Main(argc, argv); }
