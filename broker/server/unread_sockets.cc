// Fds that peers have been sent and have not read.
#include "broker/server/unread_sockets.h"

namespace gmb::broker {
namespace {

// Between two looks at what peers have read, while some tenant has no room.
constexpr std::chrono::milliseconds kLookInterval{200};

}  // namespace

void UnreadSockets::Leave(const HandleConnection& connection) {
  if (connection.unread != nullptr &&
      !connection.unread->GiveBackIfRead(connection.socket->fd())) {
    left_.emplace_back(connection.socket, connection.unread);
  }
}

bool UnreadSockets::Look(const ConnectionTable& connections) {
  looked_at_ = std::chrono::steady_clock::now();
  bool left = false;
  for (const auto& [id, connection] : connections.all()) {
    if (connection->unread != nullptr &&
        !connection->unread->GiveBackIfRead(connection->socket->fd())) {
      left = true;
    }
  }
  std::erase_if(left_,
                [](const auto& each) { return !HasUnread(each.first->fd()); });
  return left || any_left();
}

bool UnreadSockets::MayLookAgain(Time now) const {
  return now - looked_at_ >= kLookInterval;
}

}  // namespace gmb::broker
