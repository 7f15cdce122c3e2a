#ifndef GMB_IPC_EPOLL_SET_H_
#define GMB_IPC_EPOLL_SET_H_

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::ipc {

// The object of an event of a server's epoll set: a kind, and an id that is
// never used twice, so that an event which was already on its way when its
// object went away is recognised as stale.
struct EpollTag {
  enum Kind : uint8_t { kNews, kListener, kSocket, kPidfd };
  Kind kind = kNews;
  uint64_t id = 0;

  [[nodiscard]] uint64_t Pack() const { return id << 3 | kind; }
  static EpollTag Unpack(uint64_t packed) {
    return {static_cast<Kind>(packed & 7), packed >> 3};
  }
};

// The other side has closed, or the socket has failed.
inline constexpr uint32_t kEndEvents = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

// nullopt: there is none.
inline std::optional<std::chrono::steady_clock::time_point> Earliest(
    std::initializer_list<std::optional<std::chrono::steady_clock::time_point>>
        times) {
  std::optional<std::chrono::steady_clock::time_point> earliest;
  for (const auto& time : times) {
    if (time.has_value() && (!earliest.has_value() || *time < *earliest))
      earliest = time;
  }
  return earliest;
}

// How long epoll_wait may last; nullopt: for ever.
inline int MillisecondsUntil(
    std::optional<std::chrono::steady_clock::time_point> time) {
  if (!time.has_value()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      *time - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
}

// An epoll set, level-triggered. Thread-safe, as the kernel's is.
class EpollSet {
 public:
  static absl::StatusOr<EpollSet> Create() {
    base::UniqueFd fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!fd.valid()) return absl::ErrnoToStatus(errno, "epoll_create1");
    return EpollSet(std::move(fd));
  }

  [[nodiscard]] absl::Status Add(int fd, EpollTag tag, uint32_t events) const {
    return Control(EPOLL_CTL_ADD, fd, tag, events);
  }
  [[nodiscard]] absl::Status Change(int fd, EpollTag tag,
                                    uint32_t events) const {
    return Control(EPOLL_CTL_MOD, fd, tag, events);
  }
  void Remove(int fd) const {
    ::epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  explicit EpollSet(base::UniqueFd fd) : fd_(std::move(fd)) {}

  [[nodiscard]] absl::Status Control(int operation, int fd, EpollTag tag,
                                     uint32_t events) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag.Pack();
    if (::epoll_ctl(fd_.get(), operation, fd, &event) == 0)
      return absl::OkStatus();
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  }

  base::UniqueFd fd_;
};

}  // namespace gmb::ipc

#endif  // GMB_IPC_EPOLL_SET_H_
