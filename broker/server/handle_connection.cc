// One peer of the handle server: who it is, and its acknowledgements.
#include "broker/server/handle_connection.h"

#include <utility>

#include "base/status_macros.h"
#include "broker/server/handle_frames.h"
#include "ipc/pidfd.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

absl::Status NoFdsLeft() {
  return proto::MakeError(v1::TOO_MANY_SESSIONS,
                          "the broker has no fds left: raise its RLIMIT_NOFILE "
                          "(LimitNOFILE in systemd)",
                          {.retry_after = absl::Seconds(1)});
}

}  // namespace

std::shared_ptr<ipc::SeqpacketSocket> SocketOf(base::UniqueFd fd,
                                               const Door& door,
                                               ipc::FdDisposer* disposer) {
  return {new ipc::SeqpacketSocket(std::move(fd)),
          [disposer, door = NameOf(door)](ipc::SeqpacketSocket* socket) {
            disposer->Dispose(std::move(*socket).Release(), door);
            delete socket;
          }};
}

absl::Status HandleConnection::BeginGreeting() {
  GMB_RETURN_IF_ERROR(socket->EnableCredentials());
  GMB_ASSIGN_OR_RETURN(const ipc::PeerCredentials peer, socket->peer());
  absl::StatusOr<base::UniqueFd> opened =
      ipc::OpenPeerPidfd(socket->fd(), peer.pid);
  if (absl::IsResourceExhausted(opened.status())) return NoFdsLeft();
  if (opened.ok()) {
    pidfd = std::make_shared<const base::UniqueFd>(*std::move(opened));
  } else if (!absl::IsNotFound(opened.status())) {
    return opened.status();  // without a pidfd only a peer that no pid names
  }
  GMB_ASSIGN_OR_RETURN(greeting, Greeting::Start(peer));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<ipc::Packet>> HandleConnection::TryReceive()
    const {
  return sends_no_fds ? socket->TryReceive() : socket->TryReceiveWithoutFds();
}

absl::Status HandleConnection::TakeAck(const ipc::Packet& packet) const {
  GMB_ASSIGN_OR_RETURN(const uint64_t frame_id, ParseSlabsAck(packet));
  // A frame of ours may be on its way to the peer meanwhile.
  if (outbox->TakeOldAck(frame_id)) return absl::OkStatus();
  // Nothing else is on its way to the peer then: one frame at a time.
  if (HasUnread(socket->fd())) {
    return absl::InvalidArgumentError(
        "acknowledged slabs that it has not read");
  }
  (void)unread->GiveBackIfRead(socket->fd());
  if (outbox->OnAck(frame_id)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "acknowledged a frame that it was not sent");
}

}  // namespace gmb::broker
