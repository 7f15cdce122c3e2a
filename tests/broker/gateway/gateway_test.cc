#include "broker/gateway/gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "ipc/socket_path.h"
#include "tests/broker/gateway/frames.h"
#include "tests/ipc/open_fds.h"
#include "tests/ipc/temporary_directory.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kPatienceMs = 30'000;
const Door kDoorOfA{.origin = Origin::kTenantDirectory, .tenant = "a"};
const Door kDoorOfB{.origin = Origin::kTenantDirectory, .tenant = "b"};

// Plays gRPC, and the core: reads what its fds bring, and closes those that
// have ended.
class Servers {
 public:
  Gateway::Calls Calls() {
    return {.hand_over =
                [this](int fd) {
                  base::MutexLock lock(&mu_);
                  connections_.push_back({base::UniqueFd(fd), ""});
                },
            .end_session =
                [this](uint64_t session, std::string_view reason) {
                  base::MutexLock lock(&mu_);
                  ended_.emplace_back(std::to_string(session) + ": " +
                                      std::string(reason));
                }};
  }
  void Turn() {
    base::MutexLock lock(&mu_);
    for (Connection& connection : connections_) {
      if (connection.fd.valid()) Read(&connection);
    }
  }
  // Handed over so far.
  size_t count() {
    base::MutexLock lock(&mu_);
    return connections_.size();
  }
  int fd(size_t i) {
    base::MutexLock lock(&mu_);
    return connections_.at(i).fd.get();
  }
  std::string read(size_t i) {
    base::MutexLock lock(&mu_);
    return connections_.at(i).read;
  }
  std::vector<std::string> ended() {
    base::MutexLock lock(&mu_);
    return ended_;
  }

 private:
  struct Connection {
    base::UniqueFd fd;
    std::string read;
  };
  static void Read(Connection* connection) {
    std::array<char, 4096> bytes{};
    iovec buffer{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &buffer;
    message.msg_iovlen = 1;
    const ssize_t got = ::recvmsg(connection->fd.get(), &message, MSG_DONTWAIT);
    if (got > 0) {
      connection->read.append(bytes.data(), static_cast<size_t>(got));
    } else if (got == 0 || errno != EAGAIN) {
      connection->fd.reset();
    }
  }

  base::Mutex mu_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> ended_ ABSL_GUARDED_BY(mu_);
};

class GatewayTest : public ::testing::Test {
 protected:
  void Start(const GatewayOptions& options = {}) {
    connections_ = *GrpcConnections::Listen(directory_.File("admin"), 0600,
                                            disposer_.get());
    gateway_ = *Gateway::Create(options, &admission_, connections_.get(),
                                disposer_.get());
    ASSERT_TRUE(gateway_->AddDoor(PathOf("a"), 0600, kDoorOfA).ok());
    ASSERT_TRUE(gateway_->AddDoor(PathOf("b"), 0600, kDoorOfB).ok());
    gateway_->Serve(servers_.Calls());
  }
  template <typename Predicate>
  bool Await(Predicate wanted) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!wanted()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      servers_.Turn();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
  }
  std::string PathOf(const std::string& tenant) const {
    return directory_.File(tenant);
  }
  base::UniqueFd Connect(const std::string& tenant) const {
    base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = ipc::SocketAddress(PathOf(tenant));
    EXPECT_TRUE(address.ok());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address),
                        sizeof(*address)),
              0)
        << errno;
    return fd;
  }
  bool AnyRead(const std::string& bytes) {
    for (size_t i = 0; i < servers_.count(); ++i)
      if (servers_.read(i) == bytes) return true;
    return false;
  }
  // This process, as a connection of it shows it.
  PeerProcess Self() const {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    const base::UniqueFd one(ends[0]);
    const base::UniqueFd two(ends[1]);
    return *ConnectedProcess(one.get());
  }
  static void Send(const base::UniqueFd& client, const std::string& bytes) {
    EXPECT_EQ(::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  static bool Ended(const base::UniqueFd& client) {
    char byte = 0;
    const ssize_t got = ::recv(client.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

  const testing::TemporaryDirectory directory_;
  const std::unique_ptr<ipc::FdDisposer> disposer_ = *ipc::FdDisposer::Start();
  Admission admission_;
  Servers servers_;
  std::unique_ptr<GrpcConnections> connections_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_F(GatewayTest, AConnectionPassesOnceItsProcessHasGreetedAtThatDoor) {
  Start();
  const base::UniqueFd client = Connect("a");
  Send(client, kPreface + Headers(1));
  const base::UniqueFd other_door = Connect("b");
  admission_.Add(1, kDoorOfA, Self(), "a");
  ASSERT_TRUE(Await([&] { return servers_.count() == 1; }));
  ASSERT_TRUE(Await([&] { return !servers_.read(0).empty(); }));
  EXPECT_EQ(servers_.read(0), kPreface + Headers(1));
  const GrpcConnections::Proof proof =
      connections_->Prove("fd:" + std::to_string(servers_.fd(0)));
  EXPECT_EQ(proof.pid(), ::getpid());
  EXPECT_FALSE(Ended(other_door));
  EXPECT_EQ(servers_.count(), 1U);
}

TEST_F(GatewayTest, AStrangerIsTurnedAwayUnread) {
  Start({.greeting_timeout = std::chrono::milliseconds(50)});
  const base::UniqueFd client = Connect("a");
  Send(client, kPreface);
  EXPECT_TRUE(Await([&] { return Ended(client); }));
  EXPECT_EQ(servers_.count(), 0U);
}

TEST_F(GatewayTest, AFloodOfStrangersDrownsItself) {
  Start({.greeting_timeout = std::chrono::hours(1), .max_waiting = 8});
  std::vector<base::UniqueFd> flood;
  for (int i = 0; i < 500; ++i) flood.push_back(Connect("a"));
  EXPECT_TRUE(Await([&] { return Ended(flood[491]); }));
  const base::UniqueFd honest = Connect("b");
  admission_.Add(1, kDoorOfB, Self(), "b");
  EXPECT_TRUE(Await([&] { return servers_.count() == 1; }));
  EXPECT_FALSE(Ended(honest));
}

TEST_F(GatewayTest, WhoBreaksABoundLosesConnectionAndSessions) {
  Start();
  admission_.Add(1, kDoorOfA, Self(), "a");
  admission_.Add(2, kDoorOfA, Self(), "a");
  admission_.Add(3, kDoorOfB, Self(), "b");
  const base::UniqueFd client = Connect("a");
  const base::UniqueFd other = Connect("b");
  ASSERT_TRUE(Await([&] { return servers_.count() == 2; }));
  Send(client, kPreface + Frame(FrameHeader::kHeaders, 0, 1, 20'000));
  EXPECT_TRUE(Await([&] { return Ended(client); }));
  EXPECT_TRUE(Await([&] { return servers_.ended().size() == 2; }));
  EXPECT_THAT(servers_.ended(),
              ElementsAre(HasSubstr("1: it broke the bounds"),
                          HasSubstr("a frame of 20000 bytes")));
  EXPECT_FALSE(Ended(other));
}

TEST_F(GatewayTest, AProcessHasOneConnectionASessionAndFewToSpare) {
  Start({.greeting_timeout = std::chrono::milliseconds(100),
         .spare_connections = 1});
  admission_.Add(1, kDoorOfA, Self(), "a");
  std::vector<base::UniqueFd> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(Connect("a"));
  ASSERT_TRUE(Await([&] { return Ended(clients[4]); }));
  EXPECT_TRUE(Await([&] { return servers_.count() == 2; }));
  EXPECT_FALSE(Ended(clients[0]));
  // One ends, and the next may pass.
  clients[0].reset();
  ASSERT_TRUE(Await([&] { return connections_->open() == 1; }));
  const base::UniqueFd next = Connect("a");
  EXPECT_TRUE(Await([&] { return servers_.count() == 3; }));
}

// Short-lived sessions, each with a connection that floods, are a flood too.
TEST_F(GatewayTest, ATenantConnectsSoOftenAndNoOtherTenantWaitsForIt) {
  Start({.greeting_timeout = std::chrono::hours(1),
         .spare_connections = 1000,
         .tenants = {.connects_at_once = 5, .connects_a_second = 0}});
  for (int i = 0; i < 10; ++i) admission_.Add(i, kDoorOfA, Self(), "a");
  std::vector<base::UniqueFd> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(Connect("a"));
  ASSERT_TRUE(Await([&] { return servers_.count() == 5; }));
  admission_.Add(10, kDoorOfB, Self(), "b");
  clients.push_back(Connect("b"));
  Send(clients.back(), kPreface);
  ASSERT_TRUE(Await([&] { return AnyRead(kPreface); }));
  EXPECT_EQ(servers_.count(), 6U);
  for (const base::UniqueFd& client : clients) EXPECT_FALSE(Ended(client));
}

TEST_F(GatewayTest, AConnectionThatMadeManyCallsCountsAsMoreThanOne) {
  Start({.greeting_timeout = std::chrono::hours(1),
         .spare_connections = 1000,
         .tenants = {.connects_at_once = 5,
                     .connects_a_second = 0,
                     .calls_a_connect = 4,
                     .connects_a_breach = 100}});
  for (int i = 0; i < 10; ++i) admission_.Add(i, kDoorOfA, Self(), "a");
  std::string calls = kPreface;
  for (uint32_t i = 0; i < 9; ++i) calls += Headers(2 * i + 1);
  {
    const base::UniqueFd busy = Connect("a");
    Send(busy, calls);
    ASSERT_TRUE(Await(
        [&] { return servers_.count() == 1 && servers_.read(0) == calls; }));
  }
  ASSERT_TRUE(Await([&] { return connections_->open() == 0; }));
  // Itself, and two for its nine calls.
  std::vector<base::UniqueFd> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(Connect("a"));
  ASSERT_TRUE(Await([&] { return servers_.count() == 3; }));
  admission_.Add(10, kDoorOfB, Self(), "b");
  const base::UniqueFd other = Connect("b");
  Send(other, kPreface);
  ASSERT_TRUE(Await([&] { return AnyRead(kPreface); }));
  EXPECT_EQ(servers_.count(), 4U);
}

// Of many connections as of one.
TEST_F(GatewayTest, ATenantOpensSoManyCallsAndOthersDoNotWaitForIt) {
  Start({.spare_connections = 1000,
         .tenants = {.calls_at_once = 20, .calls_a_second = 0}});
  for (int i = 0; i < 10; ++i) admission_.Add(i, kDoorOfA, Self(), "a");
  admission_.Add(10, kDoorOfB, Self(), "b");
  std::vector<base::UniqueFd> clients;
  std::string calls = kPreface;
  for (uint32_t i = 0; i < 10; ++i) calls += Headers(2 * i + 1);
  for (int i = 0; i < 9; ++i) {
    clients.push_back(Connect("a"));
    ASSERT_TRUE(Await([&] { return servers_.count() == clients.size(); }));
    Send(clients.back(), calls);
    const std::string& passes = i < 2 ? calls : kPreface;
    ASSERT_TRUE(
        Await([&] { return servers_.read(clients.size() - 1) == passes; }));
  }
  const base::UniqueFd other = Connect("b");
  Send(other, calls);
  EXPECT_TRUE(Await(
      [&] { return servers_.count() == 10 && servers_.read(9) == calls; }));
  EXPECT_EQ(servers_.read(8), kPreface);
  EXPECT_THAT(servers_.ended(), IsEmpty());
}

// gRPC does not come by itself: this one reads only at an edge of epoll.
TEST_F(GatewayTest, GrpcIsToldToTryACallThatWaitsOnceItIsItsTurn) {
  Start({.tenants = {.calls_at_once = 1, .calls_a_second = 2}});
  admission_.Add(1, kDoorOfA, Self(), "a");
  const base::UniqueFd client = Connect("a");
  const std::string first = kPreface + Headers(1);
  Send(client, first);
  ASSERT_TRUE(Await(
      [&] { return servers_.count() == 1 && servers_.read(0) == first; }));
  Send(client, Headers(3));
  servers_.Turn();  // it waits
  const base::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event wanted{};
  wanted.events = EPOLLIN | EPOLLOUT | EPOLLET;
  ASSERT_EQ(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, servers_.fd(0), &wanted),
            0);
  std::string read = servers_.read(0);
  for (int edges = 0; read == first && edges < 100; ++edges) {
    epoll_event event{};
    ASSERT_EQ(::epoll_wait(epoll.get(), &event, 1, kPatienceMs), 1);
    servers_.Turn();
    read = servers_.read(0);
  }
  EXPECT_EQ(read, first + Headers(3));
}

TEST_F(GatewayTest, CallsThatWaitAreReadLater) {
  Start({.tenants = {.calls_at_once = 10, .calls_a_second = 200}});
  admission_.Add(1, kDoorOfA, Self(), "a");
  std::string calls = kPreface;
  for (uint32_t i = 0; i < 10; ++i) calls += Headers(2 * i + 1);
  const base::UniqueFd first = Connect("a");
  const base::UniqueFd second = Connect("a");
  Send(first, calls);
  Send(second, calls);
  EXPECT_TRUE(Await([&] {
    return servers_.count() == 2 && servers_.read(0) == calls &&
           servers_.read(1) == calls;
  }));
}

// However many calls the other one has.
TEST_F(GatewayTest, ConnectionsOfATenantTakeTurns) {
  Start({.tenants = {.calls_at_once = 1, .calls_a_second = 50}});
  admission_.Add(1, kDoorOfA, Self(), "a");
  constexpr uint32_t kFrameHeaderBytes = 9;
  constexpr uint32_t kFrameBytes = 4096;  // as much as is read at once
  constexpr uint32_t kCalls = 24;
  std::string calls = kPreface;
  for (uint32_t i = 0; i < kCalls; ++i) {
    calls += Headers(2 * i + 1, kFrameBytes - kFrameHeaderBytes);
  }
  const base::UniqueFd busy = Connect("a");
  ASSERT_TRUE(Await([&] { return servers_.count() == 1; }));
  const base::UniqueFd other = Connect("a");
  ASSERT_TRUE(Await([&] { return servers_.count() == 2; }));
  Send(busy, calls);
  const auto calls_of_busy = [&] {
    return servers_.read(0).size() / kFrameBytes;
  };
  ASSERT_TRUE(Await([&] { return calls_of_busy() >= 3; }));
  const size_t before = calls_of_busy();
  const std::string call = kPreface + Headers(1);
  Send(other, call);
  ASSERT_TRUE(Await([&] { return servers_.read(1) == call; }));
  EXPECT_LE(calls_of_busy(), before + 4);
  ASSERT_LT(before + 4, kCalls);
  EXPECT_TRUE(Await([&] { return servers_.read(0) == calls; }));
}

TEST_F(GatewayTest, OneThatHasGoneHoldsUpNobodyInLine) {
  Start({.tenants = {.calls_at_once = 1, .calls_a_second = 2}});
  admission_.Add(1, kDoorOfA, Self(), "a");
  base::UniqueFd gone = Connect("a");
  ASSERT_TRUE(Await([&] { return servers_.count() == 1; }));
  const base::UniqueFd other = Connect("a");
  ASSERT_TRUE(Await([&] { return servers_.count() == 2; }));
  const std::string call = kPreface + Headers(1);
  Send(gone, call);
  ASSERT_TRUE(Await([&] { return servers_.read(0) == call; }));
  Send(gone, Headers(3));
  servers_.Turn();  // it waits
  gone.reset();
  Send(other, call);
  EXPECT_TRUE(Await([&] { return servers_.read(1) == call; }));
}

TEST_F(GatewayTest, AConnectionThatCameTooOftenPassesLater) {
  Start({.spare_connections = 1000,
         .tenants = {.connects_at_once = 1, .connects_a_second = 50}});
  for (int i = 0; i < 10; ++i) admission_.Add(i, kDoorOfA, Self(), "a");
  std::vector<base::UniqueFd> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(Connect("a"));
  EXPECT_TRUE(Await([&] { return servers_.count() == 10; }));
}

TEST_F(GatewayTest, AConnectionEndsAfterItsSessionWithItsLastWords) {
  Start();
  admission_.Add(1, kDoorOfA, Self(), "a");
  const base::UniqueFd client = Connect("a");
  ASSERT_TRUE(Await([&] { return servers_.count() == 1; }));
  admission_.Remove(1);
  ASSERT_EQ(::send(servers_.fd(0), "bye", 3, 0), 3);
  std::array<char, 8> said{};
  ASSERT_TRUE(Await([&] {
    return ::recv(client.get(), said.data(), said.size(), MSG_DONTWAIT) == 3;
  }));
  EXPECT_TRUE(Await([&] { return Ended(client); }));
  EXPECT_THAT(servers_.ended(), IsEmpty());
}

TEST_F(GatewayTest, NothingIsLeftOfConnectionsThatEnded) {
  Start();
  admission_.Add(1, kDoorOfA, Self(), "a");
  { const base::UniqueFd warm_up = Connect("a"); }
  const auto nothing_is_open = [&] {
    return connections_->open() == 0 && disposer_->waiting() == 0;
  };
  size_t count = 1;
  ASSERT_TRUE(Await([&] { return servers_.count() == count; }));
  ASSERT_TRUE(Await(nothing_is_open));
  const size_t before = gmb::testing::OpenFds();
  for (int i = 0; i < 50; ++i) {
    { const base::UniqueFd client = Connect("a"); }
    ++count;
    ASSERT_TRUE(Await([&] { return servers_.count() == count; }));
    ASSERT_TRUE(Await(nothing_is_open));
  }
  EXPECT_EQ(gmb::testing::OpenFds(), before);
}

TEST_F(GatewayTest, NobodyIsLetInOnceItStops) {
  Start();
  admission_.Add(1, kDoorOfA, Self(), "a");
  const base::UniqueFd before = Connect("a");
  ASSERT_TRUE(Await([&] { return servers_.count() == 1; }));
  gateway_->StopAccepting();
  const base::UniqueFd late = Connect("a");
  EXPECT_TRUE(Await([&] { return Ended(late); }));
  EXPECT_EQ(servers_.count(), 1U);
  EXPECT_FALSE(Ended(before));
  gateway_.reset();
  EXPECT_TRUE(Ended(before));
  EXPECT_NE(::access(PathOf("a").c_str(), F_OK), 0);
}

TEST_F(GatewayTest, ADoorThatIsRemovedIsGone) {
  Start();
  EXPECT_TRUE(gateway_->RemoveDoor(PathOf("a")).ok());
  EXPECT_TRUE(absl::IsNotFound(gateway_->RemoveDoor(PathOf("a"))));
  EXPECT_NE(::access(PathOf("a").c_str(), F_OK), 0);
  admission_.Add(1, kDoorOfB, Self(), "b");
  const base::UniqueFd client = Connect("b");
  EXPECT_TRUE(Await([&] { return servers_.count() == 1; }));
}

}  // namespace
}  // namespace gmb::broker
