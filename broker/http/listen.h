#ifndef GMB_BROKER_HTTP_LISTEN_H_
#define GMB_BROKER_HTTP_LISTEN_H_

#include <optional>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "broker/http/address.h"
#include "ipc/listener.h"

namespace gmb::broker {

// A socket that listens for HTTP.
struct HttpListener {
  base::UniqueFd fd;
  HttpAddress address;  // with the port that it has
  // Of a Unix socket: removes its path in the end.
  std::optional<ipc::Listener> path;
};

// A Unix socket has the mode 0660: the broker's user and group may connect.
[[nodiscard]] absl::StatusOr<HttpListener> ListenForHttp(
    const HttpAddress& address);

}  // namespace gmb::broker

#endif  // GMB_BROKER_HTTP_LISTEN_H_
