// One peer of the handle server: challenge, Hello or stream, acknowledgements.
#include "broker/server/handle_connection.h"

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/server/handle_frames.h"
#include "broker/server/handle_server.h"
#include "broker/server/login_uid.h"
#include "ipc/foreign_fds.h"
#include "ipc/pidfd.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// A connection's share of one turn.
constexpr int kPacketsATurn = 16;

absl::Status NoFdsLeft() {
  return proto::MakeError(v1::TOO_MANY_SESSIONS,
                          "the broker has no fds left: raise its RLIMIT_NOFILE "
                          "(LimitNOFILE in systemd)",
                          {.retry_after = absl::Seconds(1)});
}

absl::Status TooMuchUnread() {
  return proto::MakeError(
      v1::TOO_MANY_SESSIONS,
      "processes of this tenant left too much unread that the broker sent "
      "them: end those that hang, then try again",
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

void HandleServer::OnListener(uint64_t listener) {
  for (Accepted& accepted :
       acceptor_.Accept(listener, std::chrono::steady_clock::now()))
    Challenge(std::move(accepted));
}

void HandleServer::Challenge(Accepted accepted) {
  const uint64_t id = next_connection_++;
  auto connection = std::make_unique<Connection>();
  connection->socket =
      SocketOf(std::move(accepted.socket), accepted.door, disposer_);
  connection->sends_no_fds = ipc::RefusesFds(connection->socket->fd());
  connection->origin = accepted.door.origin;
  connection->tenant_directory = std::move(accepted.door.tenant);
  Connection* const raw = connection.get();
  connections_.emplace(id, std::move(connection));
  const absl::Status sent = SendChallenge(id, raw);
  if (!sent.ok()) {
    Refuse(id, sent);
    return;
  }
  const std::optional<uint64_t> victim = pending_.Add(
      id, accepted.listener, static_cast<uint64_t>(raw->greeting->peer().pid),
      After(options_.greeting_timeout));
  if (!victim.has_value()) return;
  Refuse(*victim, proto::MakeError(
                      v1::TOO_MANY_SESSIONS,
                      "too many connections have not greeted yet: try again",
                      {.retry_after = absl::Seconds(1)}));
}

absl::Status HandleServer::SendChallenge(uint64_t id, Connection* connection) {
  ipc::SeqpacketSocket& socket = *connection->socket;
  const absl::Status credentials = socket.EnableCredentials();
  if (!credentials.ok()) return credentials;
  const absl::StatusOr<ipc::PeerCredentials> peer = socket.peer();
  if (!peer.ok()) return peer.status();
  absl::StatusOr<base::UniqueFd> pidfd =
      ipc::OpenPeerPidfd(socket.fd(), peer->pid);
  if (absl::IsResourceExhausted(pidfd.status())) return NoFdsLeft();
  if (pidfd.ok()) {
    connection->pidfd =
        std::make_shared<const base::UniqueFd>(*std::move(pidfd));
  } else if (!absl::IsNotFound(pidfd.status())) {
    return pidfd.status();  // without a pidfd only a peer that no pid names
  }
  absl::StatusOr<Greeting> greeting = Greeting::Start(*peer);
  if (!greeting.ok()) return greeting.status();
  connection->greeting = *std::move(greeting);
  if (const absl::Status watched = Watch(id, *connection); !watched.ok())
    return watched;
  return socket
      .TrySend(ChallengeFrame(connection->greeting->nonce(),
                              calls_.open_stream != nullptr),
               {})
      .status();
}

absl::Status HandleServer::Watch(uint64_t id,
                                 const Connection& connection) const {
  const absl::Status watched = epoll_.Add(
      connection.socket->fd(), {ipc::EpollTag::kSocket, id}, kPeerEvents);
  if (!watched.ok() || connection.pidfd == nullptr) return watched;
  return epoll_.Add(connection.pidfd->get(), {ipc::EpollTag::kPidfd, id},
                    EPOLLIN);
}

void HandleServer::OnSocket(uint64_t id, uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection* const connection = found->second.get();
  if ((events & EPOLLIN) != 0) {
    if (!Receive(id, connection)) return;
  } else if ((events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0) {
    OnHangup(id, connection);
    return;
  }
  if ((events & EPOLLOUT) != 0) OnRoom(id, connection);
}

bool HandleServer::Receive(uint64_t id, Connection* connection) {
  for (int i = 0; i < kPacketsATurn; ++i) {
    const absl::StatusOr<std::optional<ipc::Packet>> packet =
        connection->sends_no_fds ? connection->socket->TryReceive()
                                 : connection->socket->TryReceiveWithoutFds();
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
      if (connections_.find(id) == connections_.end()) return false;
      continue;
    }
    const absl::StatusOr<uint64_t> frame_id =
        packet.ok() ? ParseSlabsAck(**packet) : packet.status();
    if (!frame_id.ok()) {
      End(id,
          absl::StrCat("it broke the protocol: ", frame_id.status().message()));
      return false;
    }
    // A frame of ours may be on its way to the peer meanwhile.
    if (connection->outbox->TakeOldAck(*frame_id)) continue;
    // Nothing else is on its way to the peer then: one frame at a time.
    if (HasUnread(connection->socket->fd())) {
      End(id, "it broke the protocol: acknowledged slabs that it has not read");
      return false;
    }
    (void)connection->unread->GiveBackIfRead(connection->socket->fd());
    if (!connection->outbox->OnAck(*frame_id)) {
      End(id,
          "it broke the protocol: acknowledged a frame that it was not sent");
      return false;
    }
  }
  return true;
}

void HandleServer::OnFirstPacket(uint64_t id, Connection* connection,
                                 const ipc::Packet& packet) {
  const absl::StatusOr<std::variant<ProvedHello, AskedStream>> proved =
      connection->greeting->OnPacket(packet);
  if (!proved.ok()) {
    Refuse(id, proved.status());
    return;
  }
  // After the first packet: had its pid been recycled, the pidfd's process
  // would be dead.
  if (connection->pidfd != nullptr && !ipc::IsAlive(*connection->pidfd)) {
    End(id, kProcessEnded);
    return;
  }
  if (const auto* hello = std::get_if<ProvedHello>(&*proved)) {
    OnHello(id, connection, *hello);
  } else {
    OnAskedStream(id, std::get<AskedStream>(*proved));
  }
}

// From here on the connection is not ours: this thread reads it no more.
void HandleServer::OnAskedStream(uint64_t id, const AskedStream& asked) {
  const std::unique_ptr<Connection> connection = Part(id, "a stream");
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

void HandleServer::OnHello(uint64_t id, Connection* connection,
                           const ProvedHello& hello) {
  const ipc::PeerCredentials& peer = connection->greeting->peer();
  const std::optional<uid_t> login_uid = connection->origin == Origin::kAdmin
                                             ? LoginUidOf(peer.pid)
                                             : std::nullopt;
  absl::StatusOr<OpenedSession> opened =
      calls_.open({.origin = connection->origin,
                   .tenant_directory = connection->tenant_directory,
                   .pid = peer.pid,
                   .uid = peer.uid,
                   .gid = peer.gid,
                   .login_uid = login_uid,
                   .program = hello.program,
                   .tenant_token = hello.tenant_token,
                   .pidfd = connection->pidfd});
  if (!opened.ok()) {
    Refuse(id, opened.status());
    return;
  }
  pending_.Remove(id);
  connection->session = opened->id;
  connection->outbox = opened->outbox;
  connection->unread = std::make_shared<UnreadFds>(in_flight_, opened->tenant);
  if (calls_.keep != nullptr && connection->origin != Origin::kAdmin) {
    calls_.keep(opened->id, connection->socket->fd(), connection->pidfd,
                opened->gate_page.get());
  }
  if (const absl::Status sent = Welcome(connection, *opened); !sent.ok()) {
    Refuse(id, sent);
    return;
  }
  if (calls_.welcomed != nullptr && connection->origin != Origin::kAdmin)
    calls_.welcomed(opened->id);
  connection->outbox->AttachSocket(std::make_shared<SocketSender>(
      id, connection->socket, connection->unread, news_));
}

absl::Status HandleServer::Welcome(Connection* connection,
                                   const OpenedSession& opened) {
  std::vector<int> fds;
  if (opened.gate_page.valid()) {
    fds.push_back(opened.gate_page.get());
    if (!connection->unread->Take(fds.size())) {
      if (!MayLookAgain(std::chrono::steady_clock::now()))
        return TooMuchUnread();
      ForgetWhatWasRead();
      if (!connection->unread->Take(fds.size())) return TooMuchUnread();
    }
    if (!next_sweep_.has_value()) next_sweep_ = After(SweepInterval());
  }
  const absl::StatusOr<bool> sent =
      connection->socket->TrySend(WelcomeFrame(opened), fds);
  if (!fds.empty()) connection->unread->Sent();
  if (!sent.ok()) return sent.status();
  return *sent ? absl::OkStatus() : absl::UnavailableError("no room for it");
}

void HandleServer::WaitForRoom(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const absl::Status changed =
      epoll_.Change(found->second->socket->fd(), {ipc::EpollTag::kSocket, id},
                    kPeerEvents | EPOLLOUT);
  if (!changed.ok()) End(id, "its socket can not be watched");
}

void HandleServer::OnRoom(uint64_t id, Connection* connection) {
  const absl::Status changed = epoll_.Change(
      connection->socket->fd(), {ipc::EpollTag::kSocket, id}, kPeerEvents);
  if (!changed.ok()) {
    End(id, "its socket can not be watched");
    return;
  }
  connection->outbox->OnSocketWritable();
}

}  // namespace gmb::broker
