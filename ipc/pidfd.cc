// Greeting and death: the process behind a connection.
#include "ipc/pidfd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // newer than the headers we build against
#endif

namespace gmb::ipc {
namespace {

constexpr auto kPidFsMagic = 0x50494446;  // PID_FS_MAGIC of linux/magic.h

absl::Status Died() {
  return absl::UnavailableError("the peer's process has died");
}

absl::StatusOr<base::UniqueFd> AliveOnly(base::UniqueFd pidfd) {
  if (!IsAlive(pidfd)) return Died();
  return pidfd;
}

absl::Status PidfdError(int error, absl::string_view call) {
  switch (error) {
    case ESRCH:
    case EINVAL:
      return Died();
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(
          "no fd left for a pidfd: raise RLIMIT_NOFILE");
    default:
      return absl::ErrnoToStatus(error, call);
  }
}

}  // namespace

absl::StatusOr<base::UniqueFd> OpenPeerPidfd(int socket_fd, pid_t pid) {
  int peer = -1;
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &peer, &size) == 0) {
    base::UniqueFd pidfd(peer);
    ::fcntl(pidfd.get(), F_SETFD, FD_CLOEXEC);
    return AliveOnly(std::move(pidfd));
  }
  if (errno != ENOPROTOOPT) return PidfdError(errno, "getsockopt SO_PEERPIDFD");
  if (pid <= 0) {
    return absl::NotFoundError(
        "the peer is not visible from this process's pid namespace");
  }
  base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) return PidfdError(errno, "pidfd_open");
  return AliveOnly(std::move(pidfd));
}

bool IsAlive(const base::UniqueFd& pidfd) {
  pollfd entry{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  int ready = -1;
  do {
    ready = ::poll(&entry, 1, 0);
  } while (ready < 0 && errno == EINTR);
  return ready == 0;
}

bool IsPidfd(int fd) {
  const std::string link = absl::StrCat("/proc/self/fd/", fd);
  std::array<char, 64> name{};
  const ssize_t size = ::readlink(link.c_str(), name.data(), name.size());
  // The name of an anonymous inode is the kernel's; a file's begins with "/".
  return size > 0 &&
         absl::string_view(name.data(), static_cast<size_t>(size)) ==
             "anon_inode:[pidfd]";
}

std::optional<uint64_t> ProcessNumber(const base::UniqueFd& pidfd) {
  // Older kernels give all pidfds one and the same inode.
  struct statfs system {};
  struct stat info {};
  if (::fstatfs(pidfd.get(), &system) != 0 || system.f_type != kPidFsMagic ||
      ::fstat(pidfd.get(), &info) != 0) {
    return std::nullopt;
  }
  return info.st_ino;
}

absl::Status Kill(const base::UniqueFd& pidfd) {
  if (::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) == 0) {
    return absl::OkStatus();
  }
  if (errno == ESRCH) return Died();
  return absl::ErrnoToStatus(errno, "pidfd_send_signal");
}

}  // namespace gmb::ipc
