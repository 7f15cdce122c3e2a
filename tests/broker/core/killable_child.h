#ifndef GMB_TESTS_BROKER_CORE_KILLABLE_CHILD_H_
#define GMB_TESTS_BROKER_CORE_KILLABLE_CHILD_H_

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <utility>

#include "base/unique_fd.h"
#include "broker/machine/peer.h"

namespace gmb::broker {

// A process that does nothing, for a broker that may kill it.
class KillableChild {
 public:
  KillableChild() : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) pause();
  }
  ~KillableChild() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  KillableChild(const KillableChild&) = delete;
  KillableChild& operator=(const KillableChild&) = delete;

  // As which the broker knows it.
  [[nodiscard]] PeerIdentity Peer() const {
    PeerIdentity peer;
    peer.pid = pid_;
    peer.pidfd = std::make_shared<const base::UniqueFd>(
        static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    return peer;
  }
  // The signal that it died of; waits for that.
  [[nodiscard]] int AwaitSignal() {
    int status = 0;
    if (waitpid(std::exchange(pid_, -1), &status, 0) < 0) return -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t pid_;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_CORE_KILLABLE_CHILD_H_
