#ifndef GMB_BROKER_SOCKET_ACCESS_H_
#define GMB_BROKER_SOCKET_ACCESS_H_

#include <sys/types.h>

#include <optional>

namespace gmb::broker {

// Says who may reach a tenant's directory, and so be that tenant.
struct SocketAccess {
  std::optional<uid_t> owner = std::nullopt;  // none: the broker's own user
  std::optional<gid_t> group = std::nullopt;
  mode_t mode = 0700;

  friend bool operator==(const SocketAccess&, const SocketAccess&) = default;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SOCKET_ACCESS_H_
