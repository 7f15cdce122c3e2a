#ifndef GMB_BROKER_SOCKET_DIRECTORY_H_
#define GMB_BROKER_SOCKET_DIRECTORY_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "broker/instance_lock.h"
#include "broker/socket_access.h"

namespace gmb::broker {

// The directories in which the broker's sockets lie. The right to enter one is
// what makes a peer an operator or a tenant, so the sockets themselves are open
// to all (0666) and the directories are not.
//
//   DIR                 0755   gmb.sock, handle.sock, gmbd.lock
//   DIR/admin           0700, or 0750 with a group: handle.sock, gmb.sock
//   DIR/tenants         0711: names cannot be listed
//   DIR/tenants/NAME    as the tenant's SocketAccess says: handle.sock,
//                       gmb.sock
//
// Each of them is a socket of its own, so that a flood at one fills no other's
// backlog; the servers make and remove them. Symbolic links are never followed
// below DIR, and what belongs to strangers is refused. Not thread-safe.
class SocketDirectory {
 public:
  // Makes what is missing of DIR, its admin and its tenants directory. A DIR
  // that exists keeps its owner and mode. Holds DIR's instance lock from here
  // on, with whose ALREADY_EXISTS it answers.
  static absl::StatusOr<SocketDirectory> Open(const std::string& path,
                                              std::optional<gid_t> admin_group);

  // Makes the tenant's directory, or sets an existing one right.
  // PERMISSION_DENIED: the broker may not give it to this owner or group.
  absl::Status AddTenant(absl::string_view name, const SocketAccess& access);
  // Removes the sockets and the directory. A directory in which somebody keeps
  // other files stays, without the sockets: FAILED_PRECONDITION.
  absl::Status RemoveTenant(absl::string_view name);

  [[nodiscard]] const std::string& path() const { return path_; }
  // Where the two sockets of each directory are.
  [[nodiscard]] std::string GrpcSocket() const { return path_ + "/gmb.sock"; }
  [[nodiscard]] std::string HandleSocket() const {
    return path_ + "/handle.sock";
  }
  [[nodiscard]] std::string AdminGrpcSocket() const {
    return path_ + "/admin/gmb.sock";
  }
  [[nodiscard]] std::string AdminHandleSocket() const {
    return path_ + "/admin/handle.sock";
  }
  [[nodiscard]] std::string TenantsDirectory() const {
    return path_ + "/tenants";
  }
  [[nodiscard]] std::string TenantGrpcSocket(absl::string_view name) const;
  [[nodiscard]] std::string TenantHandleSocket(absl::string_view name) const;

 private:
  SocketDirectory(std::string path, InstanceLock lock, base::UniqueFd tenants)
      : path_(std::move(path)),
        lock_(std::move(lock)),
        tenants_(std::move(tenants)) {}

  std::string path_;
  InstanceLock lock_;
  base::UniqueFd tenants_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SOCKET_DIRECTORY_H_
