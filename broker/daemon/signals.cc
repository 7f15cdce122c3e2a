// The signals that the broker is sent, and their senders.
#include "broker/daemon/signals.h"

#include <fstream>

#include "absl/strings/str_cat.h"

namespace gmb::broker {
namespace {

// As other operators are named. Fields that the sender itself may have written
// (sigqueue) prove nothing.
std::string SenderOf(const siginfo_t& info) {
  if (info.si_code != SI_USER) return "a process that is not known";
  std::ifstream comm(absl::StrCat("/proc/", info.si_pid, "/comm"));
  std::string program;
  std::getline(comm, program);
  return absl::StrCat("uid ", info.si_uid, ", pid ", info.si_pid, " (",
                      program.empty() ? "gone" : program, ")");
}

}  // namespace

void BlockForLater() {
  sigset_t later;
  sigemptyset(&later);
  sigaddset(&later, SIGHUP);
  sigaddset(&later, kDrainSignal);
  sigaddset(&later, kDetachSignal);
  pthread_sigmask(SIG_BLOCK, &later, nullptr);
}

Signals::Signals() {
  sigemptyset(&stop_);
  sigaddset(&stop_, SIGTERM);
  sigaddset(&stop_, SIGINT);
  all_ = stop_;
  sigaddset(&all_, SIGHUP);
  sigaddset(&all_, kDrainSignal);
  sigaddset(&all_, kDetachSignal);
  pthread_sigmask(SIG_BLOCK, &all_, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

StopSignal Signals::Wait(const std::function<void()>& reload) {
  for (;;) {
    siginfo_t info{};
    const int number = sigwaitinfo(&all_, &info);
    if (number == SIGHUP) {
      reload();
    } else if (number > 0) {
      return {number, SenderOf(info)};
    }
  }
}

bool Signals::WaitFor(absl::Duration duration) {
  const timespec timeout = absl::ToTimespec(duration);
  return sigtimedwait(&stop_, nullptr, &timeout) > 0;
}

}  // namespace gmb::broker
