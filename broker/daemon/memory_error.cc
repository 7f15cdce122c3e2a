// A page of memory is broken, and a copy has touched it: the broker ends, and
// leaves word of the lease, which the next broker does not copy again.
#include "broker/daemon/memory_error.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "absl/strings/string_view.h"
#include "device/copy_in_hand.h"

namespace gmb::broker {
namespace {

constexpr absl::string_view kBrokenPageLine =
    "gmbd: the machine cannot read a page of memory that was being copied, and "
    "this process ends: the next broker takes over all but that lease; see the "
    "kernel's log (\"Memory failure\") for the hardware's fault\n";

std::atomic<CopyMark*> mark_of_copies = nullptr;

// On the thread whose access failed, which holds no lock that this needs.
void OnBusError(int signal, siginfo_t* info, void* /*context*/) {
  CopyMark* const mark = mark_of_copies.load();
  const uint64_t lease = device::CopyInHand::Owner();
  if (info->si_code == BUS_MCEERR_AR && mark != nullptr && lease != 0) {
    mark->SetDiedOf(lease);
    [[maybe_unused]] const ssize_t said =
        ::write(STDERR_FILENO, kBrokenPageLine.data(), kBrokenPageLine.size());
  }
  // The default action is in force again (SA_RESETHAND), and is taken when this
  // returns: also for a signal that somebody sent.
  ::raise(signal);
}

}  // namespace

MarksMemoryErrors::MarksMemoryErrors(CopyMark* mark) {
  mark_of_copies = mark;
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  ::sigemptyset(&action.sa_mask);
  // It fails for signals that nobody may handle alone.
  (void)::sigaction(SIGBUS, &action, nullptr);
}

MarksMemoryErrors::~MarksMemoryErrors() {
  (void)::signal(SIGBUS, SIG_DFL);
  mark_of_copies = nullptr;
}

}  // namespace gmb::broker
