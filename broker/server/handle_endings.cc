// How one peer's connection to the handle server ends, and its session.
#include <poll.h>

#include <utility>

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

void HandleServer::OnHangup(uint64_t id, HandleConnection* connection) {
  // An operator has no memory to wait for, and few sessions are for operators.
  const bool may_be_dying =
      connection->outbox != nullptr && connection->origin != Origin::kAdmin &&
      connection->pidfd != nullptr && ipc::IsAlive(*connection->pidfd) &&
      (calls_.has_leases == nullptr || calls_.has_leases(connection->session));
  if (!may_be_dying) {
    End(id, kDisconnected);
    return;
  }
  connections_.AwaitDeath(id, std::chrono::steady_clock::now() + kDeathTime);
}

// A process that ends closes its sockets before its pidfd says so: whichever is
// seen first, the reason is the same.
void HandleServer::OnDeath(uint64_t id) {
  const HandleConnection* const connection = connections_.Find(id);
  if (connection == nullptr) return;
  const bool closed =
      connections_.IsDying(id) || IsClosedByPeer(connection->socket->fd());
  End(id, closed ? kDisconnected : kProcessEnded);
}

void HandleServer::Refuse(uint64_t id, const absl::Status& why) {
  const std::unique_ptr<HandleConnection> connection = Part(id, "refused");
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
std::unique_ptr<HandleConnection> HandleServer::Part(uint64_t id,
                                                     std::string_view reason) {
  std::unique_ptr<HandleConnection> connection = connections_.Take(id);
  if (connection == nullptr) return nullptr;
  pending_.Remove(id);
  if (connection->outbox != nullptr) calls_.close(connection->session, reason);
  return connection;
}

void HandleServer::HangUp(const HandleConnection& connection) {
  connection.socket->Shutdown();
  unread_.Leave(connection);
  if (unread_.any_left()) sweep_.SetSoon();
}

}  // namespace gmb::broker
