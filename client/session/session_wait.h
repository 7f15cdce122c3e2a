#ifndef GMB_CLIENT_SESSION_SESSION_WAIT_H_
#define GMB_CLIENT_SESSION_SESSION_WAIT_H_

#include <chrono>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipc/alarm.h"
#include "ipc/epoll_set.h"
#include "ipc/wakeup.h"

namespace gmb::internal {

// The wait of the session's thread: for the session's sockets, unless calls
// read those, a word of another thread, and two times. Thread-safe, but for
// Wait.
class SessionWait {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // An error: the process is out of file descriptors.
  static absl::StatusOr<SessionWait> Create();

  [[nodiscard]] absl::Status AddSocket(int fd) const;
  // Before it is closed, and once it has hung up.
  void RemoveSocket(int fd) const;
  // Whether there is room to write at this socket counts, too: at first, no.
  void ListenForRoom(int fd, bool on) const;
  // Whether the sockets end a Wait: at first, yes.
  void ListenAtSockets(bool on) const;

  // Ends a Wait, now or once its time has come. To set the time wakes nobody.
  void Notify() { wakeup_.Notify(); }
  void SetAlarm(TimePoint time) { alarm_.Set(time); }
  void CancelAlarm() { alarm_.Cancel(); }

  // Blocks until one of them, or until `until`; it may return before.
  void Wait(std::optional<TimePoint> until);
  // The same at the sockets alone: until one can be read, or has hung up, or
  // `wakeup` is notified, which is cleared. Whether it was a socket. Before
  // `polls_until` it does not sleep, and leaves the core to others in between.
  // Any number of threads.
  [[nodiscard]] bool WaitAtSockets(ipc::Wakeup* wakeup, TimePoint polls_until,
                                   std::optional<TimePoint> until) const;

 private:
  SessionWait(ipc::EpollSet set, ipc::EpollSet sockets, ipc::Wakeup wakeup,
              ipc::Alarm alarm)
      : set_(std::move(set)),
        sockets_(std::move(sockets)),
        wakeup_(std::move(wakeup)),
        alarm_(std::move(alarm)) {}

  ipc::EpollSet set_;      // all, with the sockets as one of them
  ipc::EpollSet sockets_;  // the sockets, whose fds may be closed meanwhile
  ipc::Wakeup wakeup_;
  ipc::Alarm alarm_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_SESSION_WAIT_H_
