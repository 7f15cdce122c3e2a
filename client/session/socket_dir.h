#ifndef GMB_CLIENT_SESSION_SOCKET_DIR_H_
#define GMB_CLIENT_SESSION_SOCKET_DIR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::internal {

// The directory of a broker's two sockets. A Unix socket's path has at most
// 107 bytes, so a longer one is reached through /proc/self/fd. Keep the object
// while sockets are connected through it. Move-only.
class SocketDir {
 public:
  // Empty `dir`: GMB_SOCKET_DIR, then /run/gmb. UNAVAILABLE when it cannot be
  // opened.
  [[nodiscard]] static absl::StatusOr<SocketDir> Open(std::string dir);

  // As it was asked for, made absolute; for messages.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string handle_path() const {
    return base_ + "/handle.sock";
  }
  [[nodiscard]] std::string grpc_path() const { return base_ + "/gmb.sock"; }
  // The same for grpc::CreateChannel.
  [[nodiscard]] std::string grpc_target() const;

 private:
  SocketDir() = default;

  std::string name_;
  std::string base_;    // name_, or a short way to it
  base::UniqueFd dir_;  // open when base_ is the short way
};

// The directory that `socket_dir` means: itself, else GMB_SOCKET_DIR, else
// /run/gmb; made absolute when that is possible.
[[nodiscard]] std::string ResolveSocketDir(const std::string& socket_dir);

// Whether it is one tenant's own directory, as pods have it mounted: sockets,
// and neither operators nor tenants below it.
[[nodiscard]] bool IsTenantDirectory(const std::string& socket_dir);

// NOT_FOUND, which names the tenant: `socket_dir` is DIR/tenants/NAME, a broker
// answers in DIR, and there is no such NAME. OK: anything else. A broker makes
// the directories of all its tenants before it answers in DIR.
[[nodiscard]] absl::Status CheckTenantIsThere(const std::string& socket_dir);

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_SOCKET_DIR_H_
