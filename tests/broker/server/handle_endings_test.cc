// A peer that learns that a session is over finds it over.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/broker/server/handle_server_fixture.h"

namespace gmb::broker {
namespace {

// Whether the peer with this end of a socket has something to learn: a frame,
// or a hang-up.
bool HasNews(int fd) {
  char byte = 0;
  return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

class HandleEndingsTest : public HandleServerTest {
 protected:
  // The core notes whether a peer with this end has news as it is told to end
  // a session.
  void Watch(int fd) {
    core_.AtEachClose([this, fd](uint64_t /*session*/) {
      ++ends_;
      if (HasNews(fd)) ++known_before_;
    });
  }
  // The server is told of the end by now, and so is the peer.
  void ExpectTheCoreIsToldFirst(const std::string& what) {
    EXPECT_EQ(ends_.exchange(0), 1) << what;
    EXPECT_EQ(known_before_.exchange(0), 0) << what;
  }

  std::atomic<int> ends_ = 0;
  std::atomic<int> known_before_ = 0;
};

TEST_F(HandleEndingsTest, ASessionHasEndedBeforeItsPeerIsHungUpOn) {
  Start({.peer_timeout = absl::Milliseconds(40)});
  const std::vector<std::pair<std::string, std::function<void(Peer&)>>> ends = {
      {"breaks the protocol",
       [](Peer& peer) {
         ASSERT_TRUE(peer.socket.Send("garbage", {}, false, kLong).ok());
       }},
      {"acknowledges what it was not sent",
       [](Peer& peer) { ASSERT_TRUE(SendFrame(&peer.socket, AckOf(7)).ok()); }},
      {"does not acknowledge",
       [this](Peer& peer) {
         Push(core_.OutboxOf(peer.session).get(), FrameOf(1, 0));
         ASSERT_TRUE(peer.socket.Receive(kLong).ok());
       }},
      {"is there when the broker stops",
       [this](Peer& /*peer*/) { server_.reset(); }}};
  for (const auto& [what, end] : ends) {
    SCOPED_TRACE(what);
    Peer peer = NewPeer();
    Watch(peer.socket.fd());
    end(peer);
    ExpectHungUp(&peer.socket);
    ExpectTheCoreIsToldFirst(what);
  }
}

TEST_F(HandleEndingsTest,
       ASessionHasEndedBeforeTheHeirsOfItsSocketAreHungUpOn) {
  Start();
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Peer peer = NewPeer();
    ipc::SeqpacketSocket parent{base::UniqueFd(ends[1])};
    if (parent.Send("x", {peer.socket.fd()}, false, kLong).ok()) ::pause();
    ::_exit(1);
  }
  ipc::SeqpacketSocket to_child{base::UniqueFd(ends[0])};
  ::close(ends[1]);
  absl::StatusOr<ipc::Packet> kept = to_child.Receive(kLong);
  ASSERT_TRUE(kept.ok() && kept->fds.size() == 1);
  ipc::SeqpacketSocket heir(std::move(kept->fds.front()));
  Watch(heir.fd());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ExpectHungUp(&heir);
  ExpectTheCoreIsToldFirst("its process dies");
}

// Its greeting is proved, and there are too many unread fds to welcome it.
TEST_F(HandleEndingsTest, ASessionHasEndedBeforeItsPeerIsRefused) {
  core_.GiveGatePages();
  Start({.fds_in_flight = 8});
  ipc::SeqpacketSocket silent = Connect();
  const absl::StatusOr<v1::BrokerFrame> challenge = ReceiveFrame(&silent);
  ASSERT_TRUE(challenge.ok());
  ASSERT_TRUE(SendFrame(&silent, HelloTo(*challenge), true).ok());
  ipc::SeqpacketSocket refused = Connect();
  Watch(refused.fd());
  const absl::StatusOr<v1::BrokerFrame> answer = Greet(&refused);
  ASSERT_TRUE(answer.ok() && answer->has_refused());
  ExpectHungUp(&refused);
  ExpectTheCoreIsToldFirst("refused");
  core_.AtEachClose(nullptr);
}

}  // namespace
}  // namespace gmb::broker
