// Wakes a thread that waits in poll or epoll, when it is time.
#include "ipc/alarm.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "absl/status/status.h"

namespace gmb::ipc {

absl::StatusOr<Alarm> Alarm::Create() {
  base::UniqueFd fd(
      ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "timerfd_create");
  return Alarm(std::move(fd));
}

// The steady clock is the kernel's monotonic one. A time of 0 would mean none.
void Alarm::Set(std::chrono::steady_clock::time_point time) {
  const int64_t ns = std::max<int64_t>(
      1, std::chrono::nanoseconds(time.time_since_epoch()).count());
  constexpr int64_t kSecond = 1'000'000'000;
  itimerspec due{};
  due.it_value.tv_sec = ns / kSecond;
  due.it_value.tv_nsec = ns % kSecond;
  (void)::timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &due, nullptr);
}

void Alarm::Cancel() {
  const itimerspec none{};
  (void)::timerfd_settime(fd_.get(), 0, &none, nullptr);
}

void Alarm::Clear() {
  uint64_t times = 0;
  [[maybe_unused]] const ssize_t taken =
      ::read(fd_.get(), &times, sizeof(times));
}

}  // namespace gmb::ipc
