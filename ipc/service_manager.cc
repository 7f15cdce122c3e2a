// How a daemon's start, end and well-being reach systemd. The protocol is one
// datagram; systemd's own library would bring five others into every daemon.
#include "ipc/service_manager.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace gmb::ipc {
namespace {

constexpr int64_t kLongestMicroseconds = int64_t{24} * 3600 * 1'000'000;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::Duration WatchdogOf(const std::string& microseconds,
                          const std::string& pid) {
  int64_t us = 0;
  if (!absl::SimpleAtoi(microseconds, &us) || us <= 0 ||
      us > kLongestMicroseconds)
    return absl::ZeroDuration();
  // Of a parent, perhaps, which is watched, and left its environment to us.
  int64_t watched = 0;
  if (!pid.empty() && (!absl::SimpleAtoi(pid, &watched) || watched != getpid()))
    return absl::ZeroDuration();
  return absl::Microseconds(us);
}

}  // namespace

ServiceManager ServiceManager::FromEnvironment() {
  ServiceManager manager;
  manager.socket_ = Environment("NOTIFY_SOCKET");
  if (manager.socket_.empty()) return manager;
  manager.watchdog_ =
      WatchdogOf(Environment("WATCHDOG_USEC"), Environment("WATCHDOG_PID"));
  return manager;
}

absl::Status ServiceManager::Say(absl::string_view lines,
                                 absl::Duration longest) const {
  if (socket_.empty()) return absl::OkStatus();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if ((socket_[0] != '/' && socket_[0] != '@') ||
      socket_.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a service manager's socket: ", socket_));
  }
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  socklen_t size = sizeof(address);
  if (socket_[0] == '@') {  // an abstract one: its name ends where it ends
    address.sun_path[0] = '\0';
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                  socket_.size());
  }
  const base::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "socket");
  // To the kernel 0 is for ever.
  const timeval wait =
      absl::ToTimeval(std::max(longest, absl::Milliseconds(1)));
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
  if (::sendto(fd.get(), lines.data(), lines.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), size) < 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot tell the service manager at ", socket_));
  }
  return absl::OkStatus();
}

}  // namespace gmb::ipc
