#ifndef GMB_IPC_ALARM_H_
#define GMB_IPC_ALARM_H_

#include <chrono>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::ipc {

// Wakes a thread that waits in poll or epoll on fd(), at a time. To set it
// wakes nobody. Any thread may call all of it.
class Alarm {
 public:
  static absl::StatusOr<Alarm> Create();

  // In place of the time that was set before; one that has passed is due.
  void Set(std::chrono::steady_clock::time_point time);
  void Cancel();
  // Call it before looking at what is due: a time that is to come, also one that
  // was set meanwhile, stays.
  void Clear();

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  explicit Alarm(base::UniqueFd fd) : fd_(std::move(fd)) {}

  base::UniqueFd fd_;  // a timerfd
};

}  // namespace gmb::ipc

#endif  // GMB_IPC_ALARM_H_
