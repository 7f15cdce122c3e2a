#ifndef GMB_TESTS_BROKER_SERVER_CONNECTED_PAIR_H_
#define GMB_TESTS_BROKER_SERVER_CONNECTED_PAIR_H_

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "broker/server/handle_connection.h"
#include "ipc/epoll_set.h"
#include "ipc/seqpacket.h"

namespace gmb::broker {

// A connection of the handle server without the server, and its peer's end.
struct ConnectedPair {
  ConnectedPair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0) << errno;
    connection = std::make_unique<HandleConnection>();
    connection->socket =
        std::make_shared<ipc::SeqpacketSocket>(base::UniqueFd(ends[0]));
    peer.emplace(base::UniqueFd(ends[1]));
  }

  // Its fds are of the tenant `t`.
  void CountUnread(const std::shared_ptr<FdsInFlight>& in_flight) const {
    connection->unread = std::make_shared<UnreadFds>(in_flight, "t");
  }
  // The peer has `bytes` and an fd to read, as after a frame of slabs.
  static void SendFd(const HandleConnection& to) {
    ASSERT_TRUE(to.unread->Take(1));
    const int fd = to.socket->fd();
    ASSERT_TRUE(to.socket->TrySend("slabs", {&fd, 1}).value_or(false));
    to.unread->Sent();
  }
  void Read() { ASSERT_TRUE(peer->Receive(absl::Seconds(30)).ok()); }

  std::unique_ptr<HandleConnection> connection;
  std::optional<ipc::SeqpacketSocket> peer;  // none: it has hung up
};

// Whether the tenant `t` of all these may have another fd in flight.
inline bool HasRoom(const std::shared_ptr<FdsInFlight>& in_flight) {
  return UnreadFds(in_flight, "t").Take(1);
}

// All that epoll tells of now, without waiting: the events of each object.
inline std::map<uint64_t, uint32_t> Told(const ipc::EpollSet& epoll) {
  epoll_event events[16];
  std::map<uint64_t, uint32_t> told;
  const int count = ::epoll_wait(epoll.fd(), events, 16, 0);
  for (int i = 0; i < count; ++i) {
    const uint64_t id = events[i].data.u64;  // the struct is packed
    told[id] = events[i].events;
  }
  return told;
}

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_SERVER_CONNECTED_PAIR_H_
