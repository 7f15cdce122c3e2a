// Wakes a thread that waits in poll or epoll.
#include "ipc/wakeup.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/status/status.h"

namespace gmb::ipc {

absl::StatusOr<Wakeup> Wakeup::Create() {
  base::UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  return Wakeup(std::move(fd));
}

// A full counter (EAGAIN) is a notification already; nothing else can fail.
void Wakeup::Notify() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written =
      ::write(fd_.get(), &one, sizeof(one));
}

void Wakeup::Clear() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken =
      ::read(fd_.get(), &count, sizeof(count));
}

}  // namespace gmb::ipc
