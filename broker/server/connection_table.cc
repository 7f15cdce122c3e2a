// The handle server's peers, and what epoll tells of each.
#include "broker/server/connection_table.h"

#include <utility>

namespace gmb::broker {
namespace {

constexpr uint32_t kPeerEvents = EPOLLIN | EPOLLRDHUP;

}  // namespace

uint64_t ConnectionTable::Add(std::unique_ptr<HandleConnection> connection) {
  const uint64_t id = next_id_++;
  connections_.emplace(id, std::move(connection));
  return id;
}

HandleConnection* ConnectionTable::Find(uint64_t id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

std::unique_ptr<HandleConnection> ConnectionTable::Take(uint64_t id) {
  auto node = connections_.extract(id);
  if (node.empty()) return nullptr;
  dying_.erase(id);
  std::unique_ptr<HandleConnection> connection = std::move(node.mapped());
  // The session's sender keeps the socket open until the outbox lets it go.
  // Another process, such as the keeper, may have the pidfd for longer: epoll
  // would tell of the dead process again and again.
  epoll_->Remove(connection->socket->fd());
  if (connection->pidfd != nullptr) epoll_->Remove(connection->pidfd->get());
  return connection;
}

absl::Status ConnectionTable::Watch(uint64_t id) const {
  const HandleConnection* const connection = Find(id);
  const absl::Status watched = epoll_->Add(
      connection->socket->fd(), {ipc::EpollTag::kSocket, id}, kPeerEvents);
  if (!watched.ok() || connection->pidfd == nullptr) return watched;
  return epoll_->Add(connection->pidfd->get(), {ipc::EpollTag::kPidfd, id},
                     EPOLLIN);
}

absl::Status ConnectionTable::WatchRoom(uint64_t id, bool room) const {
  return epoll_->Change(Find(id)->socket->fd(), {ipc::EpollTag::kSocket, id},
                        room ? kPeerEvents | EPOLLOUT : kPeerEvents);
}

void ConnectionTable::AwaitDeath(uint64_t id, Time until) {
  epoll_->Remove(Find(id)->socket->fd());
  dying_.emplace(id, until);
}

std::vector<uint64_t> ConnectionTable::Outlived(Time now) const {
  std::vector<uint64_t> outlived;
  for (const auto& [id, until] : dying_) {
    if (until <= now) outlived.push_back(id);
  }
  return outlived;
}

std::optional<ConnectionTable::Time> ConnectionTable::NextDeath() const {
  std::optional<Time> next;
  for (const auto& [id, until] : dying_) {
    if (!next.has_value() || until < *next) next = until;
  }
  return next;
}

}  // namespace gmb::broker
