#ifndef GMB_BROKER_SERVER_HANDLE_CONNECTION_H_
#define GMB_BROKER_SERVER_HANDLE_CONNECTION_H_

#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "broker/core/outbox.h"
#include "broker/doors/door.h"
#include "broker/server/fds_in_flight.h"
#include "broker/server/handle_server.h"
#include "ipc/epoll_set.h"
#include "ipc/fd_disposer.h"
#include "ipc/seqpacket.h"

namespace gmb::broker {

// One peer, from accept to hang-up. With an outbox once it has a session.
struct HandleServer::Connection {
  // Shared with the session's SocketSender.
  std::shared_ptr<ipc::SeqpacketSocket> socket;
  // Shared with the session; null where the kernel has none for a peer of
  // another pid namespace.
  std::shared_ptr<const base::UniqueFd> pidfd;
  bool sends_no_fds = false;  // because the kernel refuses them
  Origin origin = Origin::kShared;
  std::string tenant_directory;
  std::optional<Greeting> greeting;
  uint64_t session = 0;
  std::shared_ptr<Outbox> outbox;
  std::shared_ptr<UnreadFds> unread;  // with a session
  bool crowded = false;               // to be tried again at the next sweep
};

inline constexpr uint32_t kPeerEvents = EPOLLIN | EPOLLRDHUP;

// The disposer closes the socket, whichever thread lets go of it last.
[[nodiscard]] std::shared_ptr<ipc::SeqpacketSocket> SocketOf(
    base::UniqueFd fd, const Door& door, ipc::FdDisposer* disposer);

// Why a session ended, for operators. A client that is done and one that was
// killed look alike.
inline constexpr char kDisconnected[] = "it disconnected";
inline constexpr char kProcessEnded[] =
    "its process ended; another one keeps its connection open";

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_HANDLE_CONNECTION_H_
