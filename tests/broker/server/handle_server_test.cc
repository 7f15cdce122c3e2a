#include "broker/server/handle_server.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <thread>

#include "absl/time/clock.h"
#include "proto/error_status.h"
#include "tests/broker/server/handle_server_fixture.h"
#include "tests/ipc/open_fds.h"

namespace gmb::broker {
namespace {

using ::gmb::testing::OpenFds;

void Kill(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// A frame of so many bytes at least, which takes long to read.
std::string LongMessage(size_t bytes) {
  v1::ClientFrame frame;
  while (frame.ByteSizeLong() < bytes)
    frame.mutable_message()->mutable_set_trimmable()->add_devices();
  return frame.SerializeAsString();
}

TEST_F(HandleServerTest, WelcomesAPeerThatAnswersTheChallenge) {
  Start();
  const Peer peer = NewPeer();
  const PeerIdentity identity = core_.PeerOf(peer.session);
  EXPECT_EQ(identity.origin, Origin::kShared);
  EXPECT_EQ(identity.pid, ::getpid());
  EXPECT_EQ(identity.uid, ::geteuid());
  EXPECT_EQ(identity.gid, ::getegid());
  EXPECT_EQ(identity.program, "tester");
  EXPECT_EQ(core_.TimesClosed(peer.session), 0U);
}

TEST_F(HandleServerTest, KnowsATenantByTheSocketItCameBy) {
  Start();
  ASSERT_TRUE(server_
                  ->AddListener(directory_.File("a"), 0600,
                                Origin::kTenantDirectory, "a")
                  .ok());
  ASSERT_TRUE(
      server_->AddListener(directory_.File("admin"), 0600, Origin::kAdmin)
          .ok());
  EXPECT_EQ(
      core_.PeerOf(NewPeer(directory_.File("a")).session).tenant_directory,
      "a");
  EXPECT_EQ(core_.PeerOf(NewPeer(directory_.File("admin")).session).origin,
            Origin::kAdmin);
}

TEST_F(HandleServerTest, ServesSocketsThatComeAndGoWhileItRuns) {
  Start();
  const std::string path = directory_.File("a");
  ASSERT_TRUE(
      server_->AddListener(path, 0600, Origin::kTenantDirectory, "a").ok());
  EXPECT_EQ(server_->AddListener(path, 0600, Origin::kShared).code(),
            absl::StatusCode::kAlreadyExists);
  Peer peer = NewPeer(path);
  ASSERT_TRUE(server_->RemoveListener(path).ok());
  EXPECT_EQ(server_->RemoveListener(path).code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ipc::SeqpacketSocket::Connect(path, kLong).ok());
  Push(core_.OutboxOf(peer.session).get(),
       FrameOf(1, 1));  // the session lives on
  EXPECT_TRUE(peer.socket.Receive(kLong).ok());
  ASSERT_TRUE(
      server_->AddListener(path, 0600, Origin::kTenantDirectory, "b").ok());
  EXPECT_EQ(core_.PeerOf(NewPeer(path).session).tenant_directory, "b");
}

TEST_F(HandleServerTest, PassesARefusalOfTheCoreOn) {
  Start();
  core_.RefuseWith(proto::MakeError(v1::TOO_MANY_SESSIONS, "enough"));
  ipc::SeqpacketSocket socket = Connect();
  const absl::StatusOr<v1::BrokerFrame> answer = Greet(&socket);
  ASSERT_TRUE(answer.ok() && answer->has_refused());
  EXPECT_EQ(answer->refused().message(), "enough");
  EXPECT_EQ(answer->refused().detail().reason(), v1::TOO_MANY_SESSIONS);
  ExpectHungUp(&socket);
}

TEST_F(HandleServerTest, RefusesAHelloWithAnotherSocketsNonce) {
  Start();
  ipc::SeqpacketSocket one = Connect();
  ipc::SeqpacketSocket other = Connect();
  const absl::StatusOr<v1::BrokerFrame> challenge = ReceiveFrame(&one);
  ASSERT_TRUE(challenge.ok() && ReceiveFrame(&other).ok());
  ASSERT_TRUE(SendFrame(&other, HelloTo(*challenge), true).ok());
  const absl::StatusOr<v1::BrokerFrame> answer = ReceiveFrame(&other);
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->has_refused());
  ExpectHungUp(&other);
}

// One that means something else to who reads all of it: a true Hello is its end.
TEST_F(HandleServerTest, RefusesALongFirstFrameUnread) {
  Start();
  ipc::SeqpacketSocket socket = Connect();
  const absl::StatusOr<v1::BrokerFrame> challenge = ReceiveFrame(&socket);
  ASSERT_TRUE(challenge.ok());
  const std::string bytes =
      LongMessage(2000) + HelloTo(*challenge).SerializeAsString();
  ASSERT_TRUE(socket.Send(bytes, {}, true, kLong).ok());
  const absl::StatusOr<v1::BrokerFrame> answer = ReceiveFrame(&socket);
  ASSERT_TRUE(answer.ok() && answer->has_refused());
  EXPECT_NE(answer->refused().message().find("at most 1024 bytes"),
            std::string::npos)
      << answer->refused().message();
  ExpectHungUp(&socket);
}

TEST_F(HandleServerTest,
       RefusesAHelloFromAnotherProcessThanTheOneThatConnected) {
  Start();
  ipc::SeqpacketSocket socket = Connect();
  const pid_t child = ::fork();
  if (child == 0) {
    const absl::StatusOr<v1::BrokerFrame> answer = Greet(&socket);
    ::_exit(answer.ok() && answer->has_refused() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(HandleServerTest, RefusesAPeerThatDoesNotGreetInTime) {
  Start({.greeting_timeout = absl::Milliseconds(20)});
  ipc::SeqpacketSocket socket = Connect();
  ASSERT_TRUE(ReceiveFrame(&socket)->has_challenge());
  EXPECT_TRUE(ReceiveFrame(&socket)->has_refused());
  ExpectHungUp(&socket);
}

TEST_F(HandleServerTest, EndsASessionOnceWhenItsPeerHangsUp) {
  Start();
  uint64_t session = 0;
  { session = NewPeer().session; }
  EXPECT_EQ(core_.AwaitClosed(session), "it disconnected");
  NewPeer();  // the server is past both the hang-up and whatever came with it
  EXPECT_EQ(core_.TimesClosed(session), 1U);
}

TEST_F(HandleServerTest, SaysTheSameWheneverAProcessAndItsSocketEndTogether) {
  Start();
  for (uint64_t session = 1; session <= 20; ++session) {
    const pid_t child = ::fork();
    if (child == 0) {
      Peer peer = NewPeer();
      if (session % 2 == 0) peer.socket.Shutdown();
      if (session % 3 == 0) ::raise(SIGKILL);
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(core_.AwaitClosed(session), "it disconnected");
  }
}

TEST_F(HandleServerTest,
       EndsASessionWhenItsProcessDiesAlthoughAnotherKeepsTheSocket) {
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
  const absl::StatusOr<ipc::Packet> kept = to_child.Receive(kLong);
  ASSERT_TRUE(kept.ok());
  ASSERT_EQ(kept->fds.size(), 1U);
  EXPECT_EQ(core_.TimesClosed(1), 0U);
  Kill(child);
  EXPECT_EQ(core_.AwaitClosed(1),
            "its process ended; another one keeps its connection open");
  NewPeer();
  EXPECT_EQ(core_.TimesClosed(1), 1U);
}

absl::Duration CpuTime() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

// As a keeper that is stopped may, which has not let go of it.
TEST_F(HandleServerTest, IsIdleThoughSomebodyHasThePidfdOfADeadProcessStill) {
  std::atomic<int> kept = -1;
  core_.KeepWith([&](uint64_t, int, const auto& pidfd, int) {
    kept = ::dup(pidfd->get());
  });
  Start();
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Peer peer = NewPeer();
    ipc::SeqpacketSocket parent{base::UniqueFd(ends[1])};
    if (parent.Send("x", {}, false, kLong).ok()) ::pause();
    ::_exit(1);
  }
  ipc::SeqpacketSocket to_child{base::UniqueFd(ends[0])};
  ::close(ends[1]);
  ASSERT_TRUE(to_child.Receive(kLong).ok());
  const base::UniqueFd pidfd(kept);
  ASSERT_TRUE(pidfd.valid());
  Kill(child);
  EXPECT_EQ(core_.AwaitClosed(1), "it disconnected");
  // In one of these times, however busy the machine is.
  const absl::Duration window = absl::Milliseconds(50);
  absl::Duration used = window;
  for (int i = 0; i < 40 && used > window / 10; ++i) {
    const absl::Duration before = CpuTime();
    absl::SleepFor(window);
    used = CpuTime() - before;
  }
  EXPECT_LE(used, window / 10) << "it looks again and again";
}

TEST_F(HandleServerTest, SendsTheNextSlabsOnlyWhenTheLastAreAcknowledged) {
  Start();
  Peer peer = NewPeer();
  const std::shared_ptr<Outbox> outbox = core_.OutboxOf(peer.session);
  Push(outbox.get(), FrameOf(1, 3));
  Push(outbox.get(), FrameOf(2, ipc::kMaxFds));
  const absl::StatusOr<ipc::Packet> first = peer.socket.Receive(kLong);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->fds.size(), 3U);
  EXPECT_FALSE(peer.socket.TryReceive()->has_value());
  ASSERT_TRUE(SendFrame(&peer.socket, AckOf(1)).ok());
  const absl::StatusOr<ipc::Packet> second = peer.socket.Receive(kLong);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->fds.size(), ipc::kMaxFds);
  ASSERT_TRUE(SendFrame(&peer.socket, AckOf(2)).ok());
}

TEST_F(HandleServerTest, EndsASessionThatDoesNotAcknowledgeInTime) {
  Start({.peer_timeout = absl::Milliseconds(40)});
  Peer late = NewPeer();
  Peer quiet = NewPeer();
  Push(core_.OutboxOf(late.session).get(), FrameOf(1, 1));
  EXPECT_EQ(core_.AwaitClosed(late.session),
            "it did not acknowledge its slabs within 40ms");
  EXPECT_EQ(core_.TimesClosed(quiet.session), 0U);
  // A frame sent after a quiet time is watched too.
  Push(core_.OutboxOf(quiet.session).get(), FrameOf(1, 1));
  EXPECT_EQ(core_.AwaitClosed(quiet.session),
            "it did not acknowledge its slabs within 40ms");
}

// The thread stands still for longer than a peer may take; that peer has
// answered meanwhile.
TEST_F(HandleServerTest, AfterAStallItReadsBeforeItJudges) {
  constexpr std::chrono::milliseconds kTimeout{40};
  constexpr int kMostTries = 100;
  Start({.peer_timeout = absl::FromChrono(kTimeout)});
  int rounds = 0;
  for (int tries = 0; rounds < 5; ++tries) {
    ASSERT_LT(tries, kMostTries) << "this machine is too slow for it";
    Peer prompt = NewPeer();
    const std::shared_ptr<Outbox> outbox = core_.OutboxOf(prompt.session);
    const auto pushed_at = std::chrono::steady_clock::now();
    bool in_time = false;
    Push(outbox.get(), FrameOf(1, 1));
    ASSERT_TRUE(prompt.socket.Receive(kLong).ok());
    core_.AtNextOpen([&] {
      (void)SendFrame(&prompt.socket, AckOf(1)).ok();
      // Else it was rightly judged before.
      in_time = std::chrono::steady_clock::now() - pushed_at < kTimeout;
      const auto until = std::chrono::steady_clock::now() + 3 * kTimeout;
      while (std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
    });
    const Peer other = NewPeer();
    // All that it judges is judged by the time that it welcomes one more.
    const Peer later = NewPeer();
    if (!in_time) continue;
    ++rounds;
    EXPECT_FALSE(outbox->WaitingForPeerSince().has_value());
    EXPECT_EQ(core_.TimesClosed(prompt.session), 0U);
  }
}

TEST_F(HandleServerTest, EndsASessionThatBreaksTheProtocolAndNoOther) {
  Start();
  Peer good = NewPeer();
  v1::ClientFrame second_hello;
  second_hello.mutable_hello()->set_protocol_version(1);
  for (const std::string& bytes :
       {std::string("garbage"), second_hello.SerializeAsString(),
        AckOf(1).SerializeAsString(), std::string(1, '\0'),
        std::string(ipc::kMaxPacketBytes, 'x')}) {
    Peer bad = NewPeer();
    ASSERT_TRUE(bad.socket.Send(bytes, {}, false, kLong).ok());
    EXPECT_EQ(core_.AwaitClosed(bad.session).substr(0, 21),
              "it broke the protocol");
    ExpectHungUp(&bad.socket);
  }
  Peer with_fd = NewPeer();
  const std::shared_ptr<Outbox> outbox = core_.OutboxOf(with_fd.session);
  Push(outbox.get(), FrameOf(1, 1));
  ASSERT_TRUE(with_fd.socket.Receive(kLong).ok());
  // Where the kernel refuses fds, the sender learns it, and nothing is sent.
  if (with_fd.socket
          .Send(AckOf(1).SerializeAsString(), {STDERR_FILENO}, false, kLong)
          .ok()) {
    EXPECT_EQ(core_.AwaitClosed(with_fd.session),
              "it broke the protocol: sent fds; a client sends none");
  } else {
    EXPECT_TRUE(core_.OutboxOf(with_fd.session)->OnAck(1));
  }
  Push(core_.OutboxOf(good.session).get(), FrameOf(1, 1));
  EXPECT_TRUE(good.socket.Receive(kLong).ok());
  EXPECT_EQ(core_.TimesClosed(good.session), 0U);
}

TEST_F(HandleServerTest, EndsASessionWhoseAcknowledgementIsLong) {
  Start();
  Peer peer = NewPeer();
  Push(core_.OutboxOf(peer.session).get(), FrameOf(1, 1));
  ASSERT_TRUE(peer.socket.Receive(kLong).ok());
  const std::string bytes = LongMessage(64) + AckOf(1).SerializeAsString();
  ASSERT_TRUE(peer.socket.Send(bytes, {}, false, kLong).ok());
  EXPECT_EQ(core_.AwaitClosed(peer.session),
            "it broke the protocol: sent something else than a SlabsAck");
}

TEST_F(HandleServerTest, EndsASessionThatAcknowledgesSlabsUnread) {
  Start();
  Peer liar = NewPeer();
  Push(core_.OutboxOf(liar.session).get(), FrameOf(1, 1));
  ASSERT_TRUE(SendFrame(&liar.socket, AckOf(1)).ok());
  EXPECT_EQ(core_.AwaitClosed(liar.session),
            "it broke the protocol: acknowledged slabs that it has not read");
}

// Fds that nobody reads count against their tenant, for as long as they lie in
// a socket, also after the session: the kernel counts them too.
TEST_F(HandleServerTest, LeavesOtherTenantsRoomForTheirFds) {
  Start({.peer_timeout = absl::Seconds(6), .fds_in_flight = 200});
  const std::string path_a = directory_.File("a");
  const std::string path_b = directory_.File("b");
  const auto add = [&](const std::string& path, const std::string& tenant) {
    return server_->AddListener(path, 0600, Origin::kTenantDirectory, tenant);
  };
  ASSERT_TRUE(add(path_a, "a").ok());
  ASSERT_TRUE(add(path_b, "b").ok());
  Peer hoarder = NewPeer(path_a);
  Push(core_.OutboxOf(hoarder.session).get(), FrameOf(1, 90));
  EXPECT_EQ(core_.AwaitClosed(hoarder.session),
            "it did not acknowledge its slabs within 6s");

  Peer second = NewPeer(path_a);
  Push(core_.OutboxOf(second.session).get(), FrameOf(1, 90));
  Peer other = NewPeer(path_b);
  Push(core_.OutboxOf(other.session).get(), FrameOf(1, 90));
  const absl::StatusOr<ipc::Packet> sent = other.socket.Receive(kLong);
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(sent->fds.size(), 90U);
  EXPECT_FALSE(second.socket.TryReceive()->has_value());

  hoarder.socket = ipc::SeqpacketSocket(base::UniqueFd());
  const absl::StatusOr<ipc::Packet> later = second.socket.Receive(kLong);
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->fds.size(), 90U);
}

TEST_F(HandleServerTest, HangsUpWhenTheCoreEndsASession) {
  Start();
  Peer peer = NewPeer();
  core_.OutboxOf(peer.session)->Close(absl::UnavailableError("enough"));
  ExpectHungUp(&peer.socket);
  core_.AwaitClosed(peer.session);
  EXPECT_EQ(core_.TimesClosed(peer.session), 1U);
}

TEST_F(HandleServerTest, EndsEverySessionAndLeavesNothingBehindWhenItStops) {
  const size_t before = OpenFds();
  Start();
  {
    Peer peer = NewPeer();
    const ipc::SeqpacketSocket silent = Connect();
    Push(core_.OutboxOf(peer.session).get(), FrameOf(1, 5));
    server_.reset();
    EXPECT_EQ(core_.AwaitClosed(peer.session), "the broker stops");
    EXPECT_EQ(core_.TimesClosed(peer.session), 1U);
  }
  // The disposer closes them soon.
  const auto deadline =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(kLong);
  while (OpenFds() != before && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  EXPECT_EQ(OpenFds(), before);
  EXPECT_FALSE(ipc::SeqpacketSocket::Connect(path_, kLong).ok());
}

}  // namespace
}  // namespace gmb::broker
