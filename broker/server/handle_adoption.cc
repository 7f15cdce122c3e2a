// Sessions of the broker before this one: their connections, which were kept.
#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "broker/server/handle_server.h"
#include "ipc/foreign_fds.h"
#include "ipc/pidfd.h"

namespace gmb::broker {
namespace {

absl::Status CheckConnection(int socket) {
  using Check = std::pair<int, int>;
  for (const auto& [option, wanted] :
       {Check{SO_DOMAIN, AF_UNIX}, Check{SO_TYPE, SOCK_SEQPACKET},
        Check{SO_ACCEPTCONN, 0}}) {
    int value = -1;
    socklen_t size = sizeof(value);
    if (::getsockopt(socket, SOL_SOCKET, option, &value, &size) != 0)
      return absl::ErrnoToStatus(errno, "what was kept is no socket");
    if (value != wanted) {
      return absl::InvalidArgumentError(
          "what was kept is no connection of a handle socket");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status HandleServer::Adopt(KeptConnection kept) {
  if (!kept.socket.valid() || kept.opened.outbox == nullptr)
    return absl::InvalidArgumentError("a session without a socket or outbox");
  auto connection = std::make_unique<HandleConnection>();
  // Closing it may take long, whatever it is.
  connection->socket = SocketOf(
      std::move(kept.socket), {kept.origin, kept.tenant_directory}, disposer_);
  const absl::Status is_one = CheckConnection(connection->socket->fd());
  if (!is_one.ok()) return is_one;
  if (kept.pidfd != nullptr && !ipc::IsPidfd(kept.pidfd->get()))
    return absl::InvalidArgumentError("what was kept as its pidfd is none");
  connection->pidfd = std::move(kept.pidfd);
  connection->sends_no_fds = ipc::RefusesFds(connection->socket->fd());
  connection->origin = kept.origin;
  connection->tenant_directory = std::move(kept.tenant_directory);
  connection->session = kept.opened.id;
  connection->outbox = std::move(kept.opened.outbox);
  connection->unread =
      std::make_shared<UnreadFds>(in_flight_, kept.opened.tenant);
  if (HasUnread(connection->socket->fd())) connection->unread->Inherit();
  {
    base::MutexLock lock(&adopted_mu_);
    adopted_.push_back(std::move(connection));
  }
  news_->Wake();
  return absl::OkStatus();
}

void HandleServer::TakeAdopted() {
  std::vector<std::unique_ptr<HandleConnection>> adopted;
  {
    base::MutexLock lock(&adopted_mu_);
    adopted = std::exchange(adopted_, {});
  }
  for (std::unique_ptr<HandleConnection>& each : adopted) {
    HandleConnection* const connection = each.get();
    const uint64_t id = connections_.Add(std::move(each));
    if (!connections_.Watch(id).ok()) {
      End(id, "its socket can not be watched");
      continue;
    }
    starts_.Attach(id, connection);
    sweep_.SetSoon();
  }
}

}  // namespace gmb::broker
