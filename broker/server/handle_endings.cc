// How one peer's connection to the handle server ends, and its session.
#include <poll.h>

#include <utility>

#include "broker/server/handle_connection.h"
#include "broker/server/handle_frames.h"
#include "broker/server/handle_server.h"
#include "ipc/pidfd.h"

namespace gmb::broker {
namespace {

// A process whose socket has hung up is nearly always dying, and the driver has
// its memory back when its pidfd turns readable (about 60 ms on an H200). A
// session that has memory ends then, so that what its slabs free is read in one
// step; a process that lives on loses its session after this time.
constexpr std::chrono::milliseconds kDeathTime{150};

bool IsClosedByPeer(int socket) {
  pollfd peer{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&peer, 1, 0) == 1 &&
         (peer.revents & (POLLHUP | POLLRDHUP)) != 0;
}

}  // namespace

void HandleServer::OnHangup(uint64_t id, Connection* connection) {
  // An operator has no memory to wait for, and few sessions are for operators.
  const bool may_be_dying =
      connection->outbox != nullptr && connection->origin != Origin::kAdmin &&
      connection->pidfd != nullptr && ipc::IsAlive(*connection->pidfd) &&
      (calls_.has_leases == nullptr || calls_.has_leases(connection->session));
  if (!may_be_dying) {
    End(id, kDisconnected);
    return;
  }
  epoll_.Remove(connection->socket->fd());
  dying_.emplace(id, std::chrono::steady_clock::now() + kDeathTime);
}

// A process that ends closes its sockets before its pidfd says so: whichever is
// seen first, the reason is the same.
void HandleServer::OnDeath(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const bool closed =
      dying_.contains(id) || IsClosedByPeer(found->second->socket->fd());
  End(id, closed ? kDisconnected : kProcessEnded);
}

void HandleServer::Refuse(uint64_t id, const absl::Status& why) {
  const std::unique_ptr<Connection> connection = Part(id, "refused");
  if (connection == nullptr) return;
  // Best effort: a peer that is gone, or does not read, learns nothing.
  (void)connection->socket->TrySend(RefusedFrame(why), {}).ok();
  HangUp(*connection);
}

void HandleServer::End(uint64_t id, std::string_view reason) {
  if (const auto connection = Part(id, reason)) HangUp(*connection);
}

// The session ends before its peer can learn that it has: whatever the peer
// does then, its token is void already.
std::unique_ptr<HandleServer::Connection> HandleServer::Part(
    uint64_t id, std::string_view reason) {
  auto node = connections_.extract(id);
  if (node.empty()) return nullptr;
  pending_.Remove(id);
  dying_.erase(id);
  std::unique_ptr<Connection> connection = std::move(node.mapped());
  // The session's sender keeps the socket open until the outbox lets it go.
  // Another process, such as the keeper, may have the pidfd for longer: epoll
  // would tell of the dead process again and again.
  epoll_.Remove(connection->socket->fd());
  if (connection->pidfd != nullptr) epoll_.Remove(connection->pidfd->get());
  if (connection->outbox != nullptr) calls_.close(connection->session, reason);
  return connection;
}

void HandleServer::HangUp(const Connection& connection) {
  connection.socket->Shutdown();
  if (connection.unread != nullptr &&
      !connection.unread->GiveBackIfRead(connection.socket->fd())) {
    left_unread_.emplace_back(connection.socket, connection.unread);
  }
  if (!left_unread_.empty() && !next_sweep_.has_value())
    next_sweep_ = After(SweepInterval());
}

}  // namespace gmb::broker
