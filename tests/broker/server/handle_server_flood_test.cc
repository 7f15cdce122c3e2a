// The handle server under peers that mean ill, or are simply too many.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "ipc/socket_path.h"
#include "tests/broker/server/handle_server_fixture.h"
#include "tests/ipc/open_fds.h"

namespace gmb::broker {
namespace {

using ::gmb::testing::OpenFds;

// Its own end, the server's, and a pidfd.
constexpr size_t kFdsOfAPeer = 3;
constexpr int kPatienceMs = 30'000;

// Waits until no more fds are open than before: closing is another thread's.
void ExpectFds(size_t before) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (OpenFds() > before && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_EQ(OpenFds(), before);
}

TEST_F(HandleServerTest,
       SurvivesTenThousandSilentConnectionsAndServesOthersMeanwhile) {
  rlimit limits{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limits), 0);
  const rlimit raised{.rlim_cur = limits.rlim_max, .rlim_max = limits.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &raised), 0);
  const size_t count = std::min<size_t>(10'000, limits.rlim_max - 2'000);
  Start({.pace = {.at_once = 1e9, .a_second = 1e9}});  // the worst
  const Peer early = NewPeer();
  const size_t before = OpenFds();
  // The flood is a process of its own, like any other tenant's.
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t flood = ::fork();
  if (flood == 0) {
    std::vector<ipc::SeqpacketSocket> silent;
    while (silent.size() < count) silent.push_back(Connect());
    if (::write(ends[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  ::close(ends[1]);
  std::atomic<bool> flooded = false;
  std::thread waiter([&] {
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    flooded = true;
  });
  int served = 0;
  while (!flooded) {
    NewPeer();
    ++served;
  }
  waiter.join();
  NewPeer();
  EXPECT_GT(served, 0);
  EXPECT_EQ(core_.TimesClosed(early.session), 0U);
  EXPECT_LE(OpenFds(),
            before + size_t{2 * 128} + ipc::FdDisposer::kCrowded + 8);
  ::kill(flood, SIGKILL);
  ::waitpid(flood, nullptr, 0);
  ::close(ends[0]);
  ExpectFds(before);
  ::setrlimit(RLIMIT_NOFILE, &limits);
}

// Sockets made while there are fds, to connect when there are none.
std::vector<ipc::SeqpacketSocket> UnconnectedSockets(size_t count) {
  std::vector<ipc::SeqpacketSocket> sockets;
  while (sockets.size() < count) {
    sockets.emplace_back(
        base::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)));
  }
  return sockets;
}

void ConnectTo(const std::string& path, const ipc::SeqpacketSocket& socket) {
  const absl::StatusOr<sockaddr_un> address = ipc::SocketAddress(path);
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&*address),
                      sizeof(*address)),
            0);
}

// Lowers the number of fds that this process may open, for a scope.
class FdLimit {
 public:
  explicit FdLimit(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit now{.rlim_cur = limit, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  FdLimit(const FdLimit&) = delete;
  FdLimit& operator=(const FdLimit&) = delete;
  ~FdLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(HandleServerTest, TurnsPeersAwayWhenNoFdIsLeft) {
  Start();
  std::vector<ipc::SeqpacketSocket> sockets = UnconnectedSockets(50);
  {
    const FdLimit limit(512);
    std::vector<base::UniqueFd> rest;
    do {
      rest.emplace_back(::dup(STDERR_FILENO));
    } while (rest.back().valid());
    for (ipc::SeqpacketSocket& socket : sockets) {
      ConnectTo(path_, socket);
      ExpectHungUp(&socket);
    }
  }
  NewPeer();
}

TEST_F(HandleServerTest, WaitsForFdsWhenNotEvenTheReservedOneIsLeft) {
  Start();
  NewPeer();
  std::vector<ipc::SeqpacketSocket> sockets = UnconnectedSockets(50);
  {
    const FdLimit limit(3);  // below every fd that could be opened
    for (const ipc::SeqpacketSocket& socket : sockets) ConnectTo(path_, socket);
  }
  // Some may have been turned away; none is left hanging.
  for (ipc::SeqpacketSocket& socket : sockets) {
    const absl::StatusOr<v1::BrokerFrame> answer = Greet(&socket);
    EXPECT_TRUE(answer.ok() || absl::IsUnavailable(answer.status()))
        << answer.status();
  }
  NewPeer();
}

TEST_F(HandleServerTest, SendsAFrameLaterWhenTheKernelLetsNoMoreFdsInFlight) {
  Start({.peer_timeout = absl::Seconds(60)});
  Peer peer = NewPeer();
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  ipc::SeqpacketSocket hoarder{base::UniqueFd(ends[0])};
  ipc::SeqpacketSocket idle{base::UniqueFd(ends[1])};
  {
    const FdLimit limit(100);
    const std::vector<int> fds(ipc::kMaxFds, STDERR_FILENO);
    ASSERT_TRUE(hoarder.TrySend("x", fds).ok());
    if (!absl::IsResourceExhausted(hoarder.TrySend("x", fds).status())) {
      GTEST_SKIP() << "this user's fds in flight are not limited";
    }
    SlabFrame frame;
    frame.frame_id = 1;
    frame.bytes = "slabs";
    frame.handles.push_back(std::make_shared<const device::ShareableHandle>(
        base::UniqueFd(::dup(STDERR_FILENO))));
    const std::shared_ptr<Outbox> outbox = core_.OutboxOf(peer.session);
    outbox->Push(std::move(frame));
    outbox->Pump();
    EXPECT_FALSE(peer.socket.TryReceive()->has_value());
  }
  const absl::StatusOr<ipc::Packet> packet = peer.socket.Receive(kLong);
  ASSERT_TRUE(packet.ok()) << packet.status();
  EXPECT_EQ(packet->fds.size(), 1U);
}

// The answer to a proper greeting, which is left unread with its fds.
v1::BrokerFrame GreetAndLook(ipc::SeqpacketSocket* socket) {
  v1::BrokerFrame answer;
  const absl::StatusOr<v1::BrokerFrame> challenge = ReceiveFrame(socket);
  if (!challenge.ok()) return answer;
  EXPECT_TRUE(SendFrame(socket, HelloTo(*challenge), true).ok());
  pollfd answered{.fd = socket->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&answered, 1, kPatienceMs), 1);
  std::string bytes(ipc::kMaxPacketBytes, '\0');
  const ssize_t size =
      ::recv(socket->fd(), bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  EXPECT_TRUE(answer.ParseFromString(bytes));
  return answer;
}

// Peers that leave their gates' pages unread use up what may be in flight.
TEST_F(HandleServerTest, GreetingsThatAreRefusedForUnreadFdsLeaveNone) {
  constexpr int kMostInFlight = 64;
  constexpr int kRefused = 200;
  core_.GiveGatePages();
  Start({.fds_in_flight = kMostInFlight});
  const size_t at_start = OpenFds();
  std::vector<ipc::SeqpacketSocket> silent;
  do {
    silent.push_back(Connect());
    ASSERT_LE(silent.size(), kMostInFlight);
  } while (GreetAndLook(&silent.back()).has_welcome());
  silent.pop_back();
  EXPECT_GE(silent.size(), 2U);
  ExpectFds(at_start + silent.size() * kFdsOfAPeer);

  std::vector<ipc::SeqpacketSocket> refused;
  for (int i = 0; i < kRefused; ++i) {
    refused.push_back(Connect());
    const v1::BrokerFrame answer = GreetAndLook(&refused.back());
    EXPECT_EQ(answer.refused().detail().reason(), v1::TOO_MANY_SESSIONS)
        << answer.ShortDebugString();
  }
  // Their own ends alone, which they still have.
  ExpectFds(at_start + silent.size() * kFdsOfAPeer + refused.size());
  refused.clear();
  silent.clear();
  ExpectFds(at_start);
  NewPeer();
}

TEST_F(HandleServerTest, SurvivesGarbageWithoutLeakingFdsOrDisturbingOthers) {
  Start();
  Peer good = NewPeer();
  const size_t before = OpenFds();
  std::mt19937 random(42);
  for (int round = 0; round < 1000; ++round) {
    ipc::SeqpacketSocket socket = Connect();
    if (random() % 2 == 0) {
      const absl::StatusOr<v1::BrokerFrame> welcome = Greet(&socket);
      ASSERT_TRUE(welcome.ok() && welcome->has_welcome());
    }
    for (uint32_t packets = random() % 4; packets > 0; --packets) {
      std::string bytes(
          1 + random() % (random() % 8 == 0 ? ipc::kMaxPacketBytes : 40), '\0');
      std::generate(bytes.begin(), bytes.end(),
                    [&] { return static_cast<char>(random()); });
      const std::vector<int> fds(
          random() % 4 == 0 ? random() % ipc::kMaxFds : 0, STDERR_FILENO);
      // The broker may have hung up already.
      static_cast<void>(socket.TrySend(bytes, fds, random() % 2 == 0).ok());
    }
  }
  ExpectFds(before);
  EXPECT_EQ(core_.TimesClosed(good.session), 0U);
  core_.OutboxOf(good.session)->Close(absl::UnavailableError("done"));
  ExpectHungUp(&good.socket);
}

// Runs `body` as the first process of a new pid namespace; returns its exit
// status, or nullopt where that is not allowed.
template <typename Body>
std::optional<int> InNewPidNamespace(Body body) {
  constexpr int kNotAllowed = 77;
  const pid_t outer = ::fork();
  if (outer == 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) ::_exit(kNotAllowed);
    const pid_t inner = ::fork();
    if (inner == 0) ::_exit(body());
    int status = 0;
    ::waitpid(inner, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(outer, &status, 0), outer);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  if (code == kNotAllowed) return std::nullopt;
  return code;
}

TEST_F(HandleServerTest, ServesAPeerWhosePidItCanNotSeeUntilItHangsUp) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
  const pid_t peer = ::fork();  // stays in the outer namespace
  if (peer == 0) {
    ::close(ready[1]);
    char byte = 0;
    if (::read(ready[0], &byte, 1) == 1) NewPeer();
    ::_exit(0);
  }
  const std::optional<int> served = InNewPidNamespace([&] {
    Start();
    if (::write(ready[1], "x", 1) != 1) return 2;
    if (core_.AwaitClosed(1) == "still open") return 3;
    return core_.PeerOf(1).pid == 0 && core_.TimesClosed(1) == 1 ? 0 : 4;
  });
  ::close(ready[0]);
  ::close(ready[1]);
  ::waitpid(peer, nullptr, 0);
  if (!served.has_value()) GTEST_SKIP() << "no pid namespaces for this user";
  EXPECT_EQ(*served, 0);
}

}  // namespace
}  // namespace gmb::broker
