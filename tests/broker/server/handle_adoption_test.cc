// A broker is killed, and the next one goes on with its connections.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "broker/server/fds_in_flight.h"
#include "ipc/pidfd.h"
#include "tests/broker/server/handle_server_fixture.h"
#include "tests/end_with_parent.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kFirstFrame = uint64_t{1} << 32;

base::UniqueFd DuplicateOf(int fd) {
  return base::UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

class HandleAdoptionTest : public HandleServerTest {
 protected:
  // The parts of one session that are kept.
  struct Kept {
    uint64_t session = 0;
    base::UniqueFd socket;
    base::UniqueFd pidfd;
    base::UniqueFd gate_page;
  };

  ~HandleAdoptionTest() override { KillLast(); }

  // The broker before: in a process of its own, which hands over what is to be
  // kept, and pushes a frame with an fd to the session that it is told.
  void StartLast() {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    ipc::SeqpacketSocket ours{base::UniqueFd(pair[0])};
    ipc::SeqpacketSocket theirs{base::UniqueFd(pair[1])};
    const pid_t parent = ::getpid();
    last_ = ::fork();
    if (last_ == 0) {
      EndWithParent(parent);
      BeTheLast(&theirs);
      ::_exit(0);
    }
    keeper_.emplace(std::move(ours));
    ASSERT_EQ(keeper_->Receive(kLong)->bytes, "ready");
  }
  void KillLast() {
    if (last_ == 0) return;
    ::kill(last_, SIGKILL);
    ::waitpid(last_, nullptr, 0);
    last_ = 0;
  }
  // It is there by the time that the peer is welcome.
  Kept ReceiveKept() {
    absl::StatusOr<ipc::Packet> packet = keeper_->Receive(absl::ZeroDuration());
    EXPECT_TRUE(packet.ok() && packet->fds.size() == 3) << packet.status();
    if (!packet.ok()) return {};
    return {.session = std::stoull(packet->bytes),
            .socket = std::move(packet->fds[0]),
            .pidfd = std::move(packet->fds[1]),
            .gate_page = std::move(packet->fds[2])};
  }
  void LetTheLastPush(uint64_t session) {
    ASSERT_TRUE(keeper_->Send(std::to_string(session), {}, false, kLong).ok());
  }
  // A session of the new broker; `kept` keeps its own duplicates.
  std::shared_ptr<Outbox> Adopt(const Kept& kept) {
    OpenedSession opened = core_.Adopt(kept.session, kFirstFrame);
    std::shared_ptr<Outbox> outbox = opened.outbox;
    const absl::Status adopted =
        server_->Adopt({.socket = DuplicateOf(kept.socket.get()),
                        .pidfd = std::make_shared<const base::UniqueFd>(
                            DuplicateOf(kept.pidfd.get())),
                        .opened = std::move(opened)});
    EXPECT_TRUE(adopted.ok()) << adopted;
    return outbox;
  }
  // The new broker sends a frame, and hears that it was read.
  void ExpectServed(Peer* peer, uint64_t frame_id) {
    Push(core_.OutboxOf(peer->session).get(), FrameOf(frame_id, 1));
    ExpectFrame(peer, frame_id);
    ASSERT_TRUE(SendFrame(&peer->socket, AckOf(frame_id)).ok());
  }
  static void ExpectFrame(Peer* peer, uint64_t frame_id) {
    const absl::StatusOr<v1::BrokerFrame> frame = ReceiveFrame(&peer->socket);
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_EQ(frame->slabs().frame_id(), frame_id);
  }

 private:
  void BeTheLast(ipc::SeqpacketSocket* keeper) {
    core_.GiveGatePages();
    core_.KeepWith([keeper](uint64_t session, int socket,
                            const std::shared_ptr<const base::UniqueFd>& pidfd,
                            int gate_page) {
      (void)keeper->Send(std::to_string(session),
                         {socket, pidfd->get(), gate_page}, false, kLong);
    });
    Start();
    (void)server_->AddListener(directory_.File("admin"), 0600, Origin::kAdmin);
    (void)keeper->Send("ready", {}, false, kLong);
    while (true) {
      const absl::StatusOr<ipc::Packet> asked = keeper->Receive(kLong);
      if (!asked.ok()) return;
      Push(core_.OutboxOf(std::stoull(asked->bytes)).get(), FrameOf(7, 1));
    }
  }

  pid_t last_ = 0;
  std::optional<ipc::SeqpacketSocket> keeper_;
};

TEST_F(HandleAdoptionTest, APeerNoticesNothingOfANewBroker) {
  StartLast();
  Peer peer = NewPeer();
  const Kept kept = ReceiveKept();
  EXPECT_EQ(kept.session, peer.session);
  EXPECT_TRUE(ipc::IsAlive(kept.pidfd));
  EXPECT_EQ(::lseek(kept.gate_page.get(), 0, SEEK_END), ::getpagesize());
  KillLast();
  Start();
  Adopt(kept);
  ExpectServed(&peer, kFirstFrame + 1);
  ExpectServed(&peer, kFirstFrame + 2);
  const Peer new_one = NewPeer();  // and the listeners are there
  EXPECT_NE(new_one.session, peer.session);
  EXPECT_EQ(core_.TimesClosed(peer.session), 0U);
}

TEST_F(HandleAdoptionTest, ASessionIsKeptBeforeItsPeerIsWelcome) {
  StartLast();
  (void)NewPeer(directory_.File("admin"));  // not kept
  const Peer peer = NewPeer();
  EXPECT_EQ(ReceiveKept().session, peer.session);
}

TEST_F(HandleAdoptionTest, WhatAPeerSentWithoutABrokerIsRead) {
  StartLast();
  Peer peer = NewPeer();
  const Kept kept = ReceiveKept();
  LetTheLastPush(peer.session);
  ExpectFrame(&peer, 7);
  KillLast();
  ASSERT_TRUE(SendFrame(&peer.socket, AckOf(7)).ok());
  Start();
  Adopt(kept);
  ExpectServed(&peer, kFirstFrame + 1);
  ExpectServed(&peer, kFirstFrame + 2);
}

TEST_F(HandleAdoptionTest, AnOldAcknowledgementMayComeWhileANewFrameIsUnread) {
  StartLast();
  Peer peer = NewPeer();
  const Kept kept = ReceiveKept();
  LetTheLastPush(peer.session);
  ExpectFrame(&peer, 7);
  KillLast();
  Start();
  Push(Adopt(kept).get(), FrameOf(kFirstFrame + 1, 1));
  while (!HasUnread(kept.socket.get())) ::usleep(1000);
  ASSERT_TRUE(SendFrame(&peer.socket, AckOf(7)).ok());
  ExpectFrame(&peer, kFirstFrame + 1);
  ASSERT_TRUE(SendFrame(&peer.socket, AckOf(kFirstFrame + 1)).ok());
  ExpectServed(&peer, kFirstFrame + 2);
}

TEST_F(HandleAdoptionTest, AFrameThatNoBrokerSentCanNotBeAcknowledged) {
  StartLast();
  Peer peer = NewPeer();
  const Kept kept = ReceiveKept();
  KillLast();
  Start();
  Adopt(kept);
  ASSERT_TRUE(SendFrame(&peer.socket, AckOf(kFirstFrame)).ok());
  EXPECT_NE(core_.AwaitClosed(peer.session).find("it was not sent"),
            std::string::npos);
  ExpectHungUp(&peer.socket);
}

TEST_F(HandleAdoptionTest, APeerThatHungUpMeanwhileHasNoSession) {
  StartLast();
  std::optional<Peer> peer = NewPeer();
  const Kept kept = ReceiveKept();
  KillLast();
  peer.reset();
  Start();
  Adopt(kept);
  EXPECT_EQ(core_.AwaitClosed(kept.session), "it disconnected");
}

TEST_F(HandleAdoptionTest, APeerThatDiedMeanwhileHasNoSession) {
  StartLast();
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  const base::UniqueFd ours(pair[0]);
  base::UniqueFd theirs(pair[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    const Peer peer = NewPeer();
    // It lives on after its process, as a socket does that was passed on.
    ipc::SeqpacketSocket out(std::move(theirs));
    (void)out.Send("x", {peer.socket.fd()}, false, kLong);
    ::pause();
    ::_exit(1);
  }
  ipc::SeqpacketSocket in(DuplicateOf(ours.get()));
  const absl::StatusOr<ipc::Packet> heir = in.Receive(kLong);
  ASSERT_TRUE(heir.ok() && heir->fds.size() == 1) << heir.status();
  const Kept kept = ReceiveKept();
  KillLast();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  Start();
  Adopt(kept);
  EXPECT_EQ(core_.AwaitClosed(kept.session),
            "its process ended; another one keeps its connection open");
}

// The peer learns that its session is over, whoever keeps a duplicate.
TEST_F(HandleAdoptionTest, AKeptDuplicateHidesNoHangUp) {
  StartLast();
  std::vector<Peer> peers;
  std::vector<Kept> kept;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(NewPeer());
    kept.push_back(ReceiveKept());
  }
  KillLast();
  Start();
  for (const Kept& each : kept) Adopt(each);
  ASSERT_TRUE(peers[0].socket.Send("garbage", {}, false, kLong).ok());
  ExpectHungUp(&peers[0].socket);
  core_.OutboxOf(peers[1].session)->Close(absl::UnavailableError("over"));
  ExpectHungUp(&peers[1].socket);
  server_.reset();
  ExpectHungUp(&peers[2].socket);
}

TEST_F(HandleAdoptionTest, ARefusedPeerIsHungUpOnThoughItWasKept) {
  std::vector<base::UniqueFd> kept;  // by the server's thread
  core_.GiveGatePages();
  core_.KeepWith([&kept](uint64_t, int socket,
                         const std::shared_ptr<const base::UniqueFd>&,
                         int) { kept.push_back(DuplicateOf(socket)); });
  Start({.fds_in_flight = 1});
  ipc::SeqpacketSocket first = Connect();  // it does not read its page
  const absl::StatusOr<v1::BrokerFrame> challenge = ReceiveFrame(&first);
  ASSERT_TRUE(challenge.ok());
  ASSERT_TRUE(SendFrame(&first, HelloTo(*challenge), true).ok());
  ipc::SeqpacketSocket second = Connect();
  const absl::StatusOr<v1::BrokerFrame> answer = Greet(&second);
  ASSERT_TRUE(answer.ok() && answer->has_refused());
  ExpectHungUp(&second);
  server_.reset();
  EXPECT_EQ(kept.size(), 2U);
}

TEST_F(HandleAdoptionTest, SlabsThatLieUnreadSinceTheLastBrokerAreCounted) {
  StartLast();
  Peer lazy = NewPeer();
  const Kept kept_lazy = ReceiveKept();
  Peer other = NewPeer();
  const Kept kept_other = ReceiveKept();
  LetTheLastPush(lazy.session);
  while (!HasUnread(kept_lazy.socket.get())) ::usleep(1000);
  KillLast();
  Start({.fds_in_flight = 16});
  Adopt(kept_lazy);
  Adopt(kept_other);
  std::shared_ptr<Outbox> outbox = core_.OutboxOf(other.session);
  Push(outbox.get(), FrameOf(kFirstFrame + 1, 0));
  ExpectFrame(&other, kFirstFrame + 1);
  ASSERT_TRUE(SendFrame(&other.socket, AckOf(kFirstFrame + 1)).ok());
  while (outbox->WaitingForPeerSince().has_value()) ::usleep(1000);
  Push(outbox.get(), FrameOf(kFirstFrame + 2, 1));
  EXPECT_FALSE(HasUnread(kept_other.socket.get()));
  ExpectFrame(&lazy, 7);
  ExpectFrame(&other, kFirstFrame + 2);
}

TEST_F(HandleAdoptionTest, WhatIsNoConnectionIsNotAdopted) {
  Start();
  base::UniqueFd null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  base::UniqueFd stream(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  base::UniqueFd none;
  base::UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr nameless{.sa_family = AF_UNIX, .sa_data = {}};
  ASSERT_EQ(::bind(listener.get(), &nameless, sizeof(nameless.sa_family)), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  for (base::UniqueFd* socket : {&null_device, &stream, &none, &listener}) {
    EXPECT_FALSE(server_
                     ->Adopt({.socket = std::move(*socket),
                              .pidfd = nullptr,
                              .opened = core_.Adopt(1, kFirstFrame)})
                     .ok());
  }
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  const base::UniqueFd other_end(pair[1]);
  EXPECT_FALSE(server_
                   ->Adopt({.socket = base::UniqueFd(pair[0]),
                            .pidfd = std::make_shared<const base::UniqueFd>(
                                DuplicateOf(other_end.get())),
                            .opened = core_.Adopt(1, kFirstFrame)})
                   .ok());
  EXPECT_EQ(core_.TimesClosed(1), 0U);
}

}  // namespace
}  // namespace gmb::broker
