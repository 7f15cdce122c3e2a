#ifndef GMB_BROKER_SERVER_HANDLE_CONNECTION_H_
#define GMB_BROKER_SERVER_HANDLE_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "broker/core/outbox.h"
#include "broker/doors/door.h"
#include "broker/server/fds_in_flight.h"
#include "broker/server/greeting.h"
#include "ipc/fd_disposer.h"
#include "ipc/seqpacket.h"

namespace gmb::broker {

// One peer, from accept to hang-up. With an outbox once it has a session.
struct HandleConnection {
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

  // Asks the kernel who connected, and makes the greeting of it. An error is
  // what to refuse the peer with.
  [[nodiscard]] absl::Status BeginGreeting();
  // nullopt: nothing more has come. UNAVAILABLE: the peer has hung up.
  [[nodiscard]] absl::StatusOr<std::optional<ipc::Packet>> TryReceive() const;
  // A packet of a peer that has a session. An error says how it broke the
  // protocol.
  [[nodiscard]] absl::Status TakeAck(const ipc::Packet& packet) const;
};

// The disposer closes the socket, whichever thread lets go of it last.
[[nodiscard]] std::shared_ptr<ipc::SeqpacketSocket> SocketOf(
    base::UniqueFd fd, const Door& door, ipc::FdDisposer* disposer);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_HANDLE_CONNECTION_H_
