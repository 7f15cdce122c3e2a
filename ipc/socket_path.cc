// Paths that a Unix socket can have.
#include "ipc/socket_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace gmb::ipc {

absl::Status CheckSocketPath(const std::string& path) {
  if (path.empty())
    return absl::InvalidArgumentError("the socket path is empty");
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("the socket path has a zero byte in it");
  }
  if (path.size() > kMaxSocketPathBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the socket path is too long: use a shorter directory or "
                     "a symbolic link to it; a Unix "
                     "socket path has at most ",
                     kMaxSocketPathBytes, " bytes, this one has ", path.size(),
                     ": ", path.substr(0, 256)));
  }
  return absl::OkStatus();
}

absl::StatusOr<sockaddr_un> SocketAddress(const std::string& path) {
  GMB_RETURN_IF_ERROR(CheckSocketPath(path));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

absl::StatusOr<PathState> InspectSocketPath(const std::string& path) {
  GMB_ASSIGN_OR_RETURN(const sockaddr_un address, SocketAddress(path));
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return PathState::kFree;
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at ", path));
  }
  if (!S_ISSOCK(info.st_mode)) return PathState::kOther;
  const base::UniqueFd probe(
      ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return absl::ErrnoToStatus(errno, "socket");
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) == 0) {
    return PathState::kListening;
  }
  switch (errno) {
    case ECONNREFUSED:
      return PathState::kStale;
    case EPROTOTYPE:  // a listener of another socket type
    case EAGAIN:      // its backlog is full
      return PathState::kListening;
    case ENOENT:
      return PathState::kFree;
    default:
      return absl::ErrnoToStatus(errno,
                                 absl::StrCat("cannot try the socket ", path));
  }
}

absl::Status RemoveStaleSocket(const std::string& path) {
  GMB_ASSIGN_OR_RETURN(const PathState state, InspectSocketPath(path));
  switch (state) {
    case PathState::kFree:
      return absl::OkStatus();
    case PathState::kListening:
      return absl::AlreadyExistsError(absl::StrCat(
          "another process listens here: stop it or use another directory: ",
          path));
    case PathState::kOther:
      return absl::AlreadyExistsError(absl::StrCat(
          "not a socket, so it is left alone: move it away: ", path));
    case PathState::kStale:
      break;
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot remove the stale socket ", path));
  }
  return absl::OkStatus();
}

}  // namespace gmb::ipc
