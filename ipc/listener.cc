// A listening Unix socket at a path.
#include "ipc/listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ipc/foreign_fds.h"
#include "ipc/socket_path.h"

namespace gmb::ipc {
namespace {

// Connections that may wait to be accepted. As many as a second brings at the
// pace of the broker's doors, so that none waits longer.
constexpr int kBacklog = 1024;

// The file at `path`, held, so that nobody can put something else in its place.
// Only a socket of ours with no other name: a tenant that owns the directory
// might have put one of another service there.
absl::StatusOr<base::UniqueFd> HoldOwnSocket(const std::string& path,
                                             struct stat* info) {
  base::UniqueFd held(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!held.valid() || ::fstat(held.get(), info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at ", path));
  if (!S_ISSOCK(info->st_mode) || info->st_uid != ::geteuid() ||
      info->st_nlink != 1) {
    return absl::AlreadyExistsError(absl::StrCat(
        "something else was put here while the socket was made: ", path));
  }
  return held;
}

// chmod does not take an O_PATH fd before Linux 6.6, but follows its name.
absl::Status SetMode(const base::UniqueFd& held, mode_t mode,
                     const std::string& path) {
  const std::string name = absl::StrCat("/proc/self/fd/", held.get());
  if (::chmod(name.c_str(), mode) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot set the mode of ",
                                                 path, " (is /proc mounted?)"));
}

}  // namespace

absl::StatusOr<Listener> Listener::Listen(const std::string& path, mode_t mode,
                                          SocketType type) {
  GMB_ASSIGN_OR_RETURN(const sockaddr_un address, SocketAddress(path));
  GMB_RETURN_IF_ERROR(RemoveStaleSocket(path));
  const int kind = type == SocketType::kStream ? SOCK_STREAM : SOCK_SEQPACKET;
  base::UniqueFd fd(::socket(AF_UNIX, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "socket");
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
             sizeof(address)) != 0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot create the socket ", path));
  }
  struct stat info {};
  GMB_ASSIGN_OR_RETURN(const base::UniqueFd held, HoldOwnSocket(path, &info));
  Listener listener(std::move(fd), path, info.st_dev, info.st_ino);
  // Nobody can connect before listen, so the mode is never wider than asked.
  GMB_RETURN_IF_ERROR(SetMode(held, mode, path));
  RefuseFds(listener.fd());
  if (::listen(listener.fd(), kBacklog) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot listen at ", path));
  }
  return listener;
}

Listener Listener::Borrow(base::UniqueFd fd, std::string path) {
  constexpr ino_t kNone = 0;  // no file has it
  return {std::move(fd), std::move(path), 0, kNone};
}

absl::Status Listener::Claim() {
  struct stat info {};
  if (::lstat(path_.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("no socket lies there any more: ", path_));
  }
  // Once more, which sets the credentials.
  if (::listen(fd_.get(), kBacklog) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot listen at ", path_));
  }
  device_ = info.st_dev;
  inode_ = info.st_ino;
  return absl::OkStatus();
}

Listener::Listener(base::UniqueFd fd, std::string path, dev_t device,
                   ino_t inode)
    : fd_(std::move(fd)),
      path_(std::move(path)),
      device_(device),
      inode_(inode) {}

Listener::Listener(Listener&& other) noexcept = default;

Listener& Listener::operator=(Listener&& other) noexcept {
  if (this != &other) {
    RemovePath();
    fd_ = std::move(other.fd_);
    path_ = std::move(other.path_);
    device_ = other.device_;
    inode_ = other.inode_;
  }
  return *this;
}

Listener::~Listener() { RemovePath(); }

base::UniqueFd Listener::Close() && {
  RemovePath();
  ::shutdown(fd_.get(), SHUT_RDWR);
  return std::move(fd_);
}

void Listener::RemovePath() {
  if (!fd_.valid()) return;  // moved from
  struct stat info {};
  if (::lstat(path_.c_str(), &info) != 0) return;
  if (info.st_dev == device_ && info.st_ino == inode_) ::unlink(path_.c_str());
}

absl::StatusOr<std::optional<base::UniqueFd>> Listener::TryAccept() {
  while (true) {
    base::UniqueFd fd(
        ::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) return fd;
    switch (errno) {
      case EINTR:
      case ECONNABORTED:
        continue;
      case EAGAIN:
        return std::nullopt;
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        return absl::ResourceExhaustedError(absl::StrCat(
            "cannot accept a connection: raise RLIMIT_NOFILE: ", path_));
      default:
        return absl::ErrnoToStatus(
            errno, absl::StrCat("cannot accept a connection at ", path_));
    }
  }
}

}  // namespace gmb::ipc
