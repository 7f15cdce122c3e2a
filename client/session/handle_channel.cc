// Where the slabs of a lease come in: as file descriptors, on a socket of
// their own beside the stream that brings the grant.
#include "client/session/handle_channel.h"

#include <sys/socket.h>

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/no_throw.h"
#include "client/wire.h"
#include "proto/error_status.h"

namespace gmb::internal {
HandleChannel::HandleChannel(ipc::SeqpacketSocket socket, SlabSink* sink)
    : sink_(*sink), socket_(std::move(socket)) {}

absl::Status HandleChannel::Receive(uint64_t reader) {
  base::MutexLock lock(&mu_);
  absl::StatusOr<std::optional<ipc::Packet>> packet = socket_.TryReceive();
  if (absl::IsInvalidArgument(packet.status())) {
    return ProtocolError(
        absl::StrCat(packet.status().message(),
                     " (if this process is short of file descriptors, raise "
                     "its limit: ulimit -n)"));
  }
  if (!packet.ok()) return packet.status();
  if (!packet->has_value()) return absl::OkStatus();
  return OnFrame(**std::move(packet), reader);
}

absl::Status HandleChannel::OnFrame(ipc::Packet packet, uint64_t reader) {
  v1::BrokerFrame frame;
  if (!frame.ParseFromString(packet.bytes))
    return ProtocolError("garbage on the handle socket");
  if (frame.has_refused()) return proto::FromWireError(frame.refused());
  if (!frame.has_slabs())
    return ProtocolError("an unexpected frame on the handle socket");
  const v1::Slabs& slabs = frame.slabs();
  // They rise, and jump where another broker has taken the session over.
  if (slabs.frame_id() <= last_frame_id_) {
    return ProtocolError(absl::StrCat("slabs frame ", slabs.frame_id(),
                                      " after ", last_frame_id_));
  }
  last_frame_id_ = slabs.frame_id();
  GMB_RETURN_IF_ERROR(sink_.OnSlabs(slabs, std::move(packet.fds), reader));
  v1::ClientFrame ack;
  ack.mutable_slabs_ack()->set_frame_id(slabs.frame_id());
  GMB_ASSIGN_OR_RETURN(const bool sent,
                       socket_.TrySend(ack.SerializeAsString(), {}));
  return sent ? absl::OkStatus()
              : ProtocolError("the broker does not read the handle socket");
}

void HandleChannel::HangUp() const { shutdown(socket_.fd(), SHUT_RDWR); }

void HandleChannel::Drain() {
  base::MutexLock lock(&mu_);
  // Leases may keep the session for long; slabs in its socket would be held as
  // long.
  NoThrow([this] {
    absl::StatusOr<std::optional<ipc::Packet>> packet = socket_.TryReceive();
    while (packet.ok() ? packet->has_value()
                       : absl::IsInvalidArgument(packet.status())) {
      packet = socket_.TryReceive();
    }
    return packet.status();
  }).IgnoreError();
}

}  // namespace gmb::internal
