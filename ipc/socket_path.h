#ifndef GMB_IPC_SOCKET_PATH_H_
#define GMB_IPC_SOCKET_PATH_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gmb::ipc {

// The longest path that a Unix socket can have: sun_path less its final zero.
inline constexpr size_t kMaxSocketPathBytes =
    sizeof(sockaddr_un{}.sun_path) - 1;

// INVALID_ARGUMENT for an empty path, one with a zero byte, and one that is too
// long; the message says the limit and what to do. gRPC's sockets obey it too.
[[nodiscard]] absl::Status CheckSocketPath(const std::string& path);
absl::StatusOr<sockaddr_un> SocketAddress(const std::string& path);

enum class PathState {
  kFree,       // nothing there
  kStale,      // a socket that nobody listens on
  kListening,  // a socket that somebody listens on, of any type
  kOther,      // not a socket
};
// The kind of file at `path`. Connects to find out, so a listener there sees a
// peer that hangs up at once. Errors: the path's directory cannot be searched.
absl::StatusOr<PathState> InspectSocketPath(const std::string& path);

// Removes a stale socket. OK when the path is free afterwards; ALREADY_EXISTS
// when somebody listens there or it is not a socket.
[[nodiscard]] absl::Status RemoveStaleSocket(const std::string& path);

}  // namespace gmb::ipc

#endif  // GMB_IPC_SOCKET_PATH_H_
