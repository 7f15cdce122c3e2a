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

// What the session's thread waits for: the handle socket, unless calls read
// that, a word of another thread, and two times. Thread-safe, but for Wait.
class SessionWait {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // An error: the process is out of file descriptors.
  static absl::StatusOr<SessionWait> Create();

  // Once, before the first Wait.
  [[nodiscard]] absl::Status AddSocket(int fd);
  // Whether the socket's data ends a Wait: at first, yes. Its hang-up always
  // does.
  void ListenAtSocket(int fd, bool on) const;

  // Ends a Wait, now or once its time has come. To set the time wakes nobody.
  void Notify() { wakeup_.Notify(); }
  void SetAlarm(TimePoint time) { alarm_.Set(time); }
  void CancelAlarm() { alarm_.Cancel(); }

  // Blocks until one of them, or until `until`; it may return before.
  void Wait(std::optional<TimePoint> until);

 private:
  SessionWait(ipc::EpollSet set, ipc::Wakeup wakeup, ipc::Alarm alarm)
      : set_(std::move(set)),
        wakeup_(std::move(wakeup)),
        alarm_(std::move(alarm)) {}

  ipc::EpollSet set_;
  ipc::Wakeup wakeup_;
  ipc::Alarm alarm_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_SESSION_WAIT_H_
