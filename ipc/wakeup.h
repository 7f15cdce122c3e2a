#ifndef GMB_IPC_WAKEUP_H_
#define GMB_IPC_WAKEUP_H_

#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::ipc {

// Wakes a thread that waits in poll or epoll on fd(). Any thread may Notify;
// notifications before a Clear count as one.
class Wakeup {
 public:
  static absl::StatusOr<Wakeup> Create();

  void Notify();
  void Clear();  // call it before looking at what the wake-up is about

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  explicit Wakeup(base::UniqueFd fd) : fd_(std::move(fd)) {}

  base::UniqueFd fd_;  // an eventfd
};

}  // namespace gmb::ipc

#endif  // GMB_IPC_WAKEUP_H_
