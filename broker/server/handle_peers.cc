// Peers of the handle server: challenge, Hello or stream, acknowledgements.
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "broker/server/handle_frames.h"
#include "broker/server/handle_server.h"
#include "ipc/foreign_fds.h"
#include "ipc/pidfd.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// A connection's share of one turn.
constexpr int kPacketsATurn = 16;

}  // namespace

void HandleServer::OnListener(uint64_t listener) {
  for (Accepted& accepted :
       acceptor_.Accept(listener, std::chrono::steady_clock::now()))
    Challenge(std::move(accepted));
}

void HandleServer::Challenge(Accepted accepted) {
  auto made = std::make_unique<HandleConnection>();
  HandleConnection* const connection = made.get();
  connection->socket =
      SocketOf(std::move(accepted.socket), accepted.door, disposer_);
  connection->sends_no_fds = ipc::RefusesFds(connection->socket->fd());
  connection->origin = accepted.door.origin;
  connection->tenant_directory = std::move(accepted.door.tenant);
  const uint64_t id = connections_.Add(std::move(made));
  absl::Status sent = connection->BeginGreeting();
  if (sent.ok()) sent = connections_.Watch(id);
  if (sent.ok()) {
    sent = connection->socket
               ->TrySend(ChallengeFrame(connection->greeting->nonce(),
                                        calls_.open_stream != nullptr),
                         {})
               .status();
  }
  if (!sent.ok()) return Refuse(id, sent);
  const std::optional<uint64_t> victim =
      pending_.Add(id, accepted.listener,
                   static_cast<uint64_t>(connection->greeting->peer().pid),
                   std::chrono::steady_clock::now() +
                       absl::ToChronoNanoseconds(options_.greeting_timeout));
  if (!victim.has_value()) return;
  Refuse(*victim, proto::MakeError(
                      v1::TOO_MANY_SESSIONS,
                      "too many connections have not greeted yet: try again",
                      {.retry_after = absl::Seconds(1)}));
}

void HandleServer::OnSocket(uint64_t id, uint32_t events) {
  HandleConnection* const connection = connections_.Find(id);
  if (connection == nullptr) return;
  if ((events & EPOLLIN) != 0) {
    if (!Receive(id, connection)) return;
  } else if ((events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0) {
    OnHangup(id, connection);
    return;
  }
  if ((events & EPOLLOUT) != 0 && WatchRoom(id, false))
    connection->outbox->OnSocketWritable();
}

bool HandleServer::Receive(uint64_t id, HandleConnection* connection) {
  for (int i = 0; i < kPacketsATurn; ++i) {
    const absl::StatusOr<std::optional<ipc::Packet>> packet =
        connection->TryReceive();
    if (absl::IsUnavailable(packet.status())) {
      OnHangup(id, connection);
      return false;
    }
    if (packet.ok() && !packet->has_value()) return true;
    if (connection->outbox == nullptr) {
      if (!packet.ok()) {
        Refuse(id, proto::MakeError(v1::BAD_REQUEST,
                                    std::string(packet.status().message())));
        return false;
      }
      OnFirstPacket(id, connection, **packet);
      if (connections_.Find(id) == nullptr) return false;
      continue;
    }
    const absl::Status taken =
        packet.ok() ? connection->TakeAck(**packet) : packet.status();
    if (!taken.ok()) {
      End(id, absl::StrCat("it broke the protocol: ", taken.message()));
      return false;
    }
  }
  return true;
}

void HandleServer::OnFirstPacket(uint64_t id, HandleConnection* connection,
                                 const ipc::Packet& packet) {
  const absl::StatusOr<std::variant<ProvedHello, AskedStream>> proved =
      connection->greeting->OnPacket(packet);
  if (!proved.ok()) return Refuse(id, proved.status());
  // After the first packet: had its pid been recycled, the pidfd's process
  // would be dead.
  if (connection->pidfd != nullptr && !ipc::IsAlive(*connection->pidfd))
    return End(id, kProcessEnded);
  if (const auto* asked = std::get_if<AskedStream>(&*proved))
    return OnAskedStream(id, *asked);
  const absl::Status started =
      starts_.Start(id, connection, std::get<ProvedHello>(*proved));
  pending_.Remove(id);
  if (!started.ok()) Refuse(id, started);
}

// From here on the connection is not ours: this thread reads it no more.
void HandleServer::OnAskedStream(uint64_t id, const AskedStream& asked) {
  const std::unique_ptr<HandleConnection> connection = Part(id, "a stream");
  const absl::Status opened =
      calls_.open_stream == nullptr
          ? proto::MakeError(v1::BAD_REQUEST,
                             "no connection is a stream here: use gRPC")
          : calls_.open_stream(
                {.door = {connection->origin, connection->tenant_directory},
                 .pid = connection->greeting->peer().pid,
                 .pidfd = connection->pidfd,
                 .token = asked.token},
                {.socket = connection->socket,
                 .sends_no_fds = connection->sends_no_fds});
  if (opened.ok()) return;
  (void)connection->socket->TrySend(StreamEndedFrame(opened), {}).ok();
  HangUp(*connection);
}

bool HandleServer::WatchRoom(uint64_t id, bool room) {
  const absl::Status changed = connections_.WatchRoom(id, room);
  if (!changed.ok()) End(id, "its socket can not be watched");
  return changed.ok();
}

}  // namespace gmb::broker
