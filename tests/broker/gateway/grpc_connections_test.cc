#include "broker/gateway/grpc_connections.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "ipc/socket_path.h"
#include "tests/ipc/temporary_directory.h"

namespace gmb::broker {
namespace {

// Plays gRPC: owns the fds that it is handed, and closes one once its peer has
// hung up or it was shut down.
class Owner {
 public:
  void Take(int fd) {
    base::MutexLock lock(&mu_);
    fds_.emplace_back(fd);
  }
  std::vector<int> fds() {
    base::MutexLock lock(&mu_);
    std::vector<int> all;
    for (const base::UniqueFd& fd : fds_) all.push_back(fd.get());
    return all;
  }
  void CloseEnded() {
    base::MutexLock lock(&mu_);
    std::erase_if(fds_, [](const base::UniqueFd& fd) {
      char byte = 0;
      return ::recv(fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
    });
  }

 private:
  base::Mutex mu_;
  std::vector<base::UniqueFd> fds_ ABSL_GUARDED_BY(mu_);
};

template <typename Predicate>
bool Await(Predicate wanted) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!wanted()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

std::string NameOf(int fd) { return "fd:" + std::to_string(fd); }

class GrpcConnectionsTest : public ::testing::Test {
 protected:
  static constexpr size_t kMost = 8;

  GrpcConnectionsTest() : path_(directory_.File("s")) {
    auto made = GrpcConnections::Listen(path_, 0600, disposer_.get(), kMost);
    EXPECT_TRUE(made.ok()) << made.status();
    connections_ = *std::move(made);
    connections_->Serve([this](int fd) { owner_.Take(fd); });
  }

  base::UniqueFd Connect() {
    base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = ipc::SocketAddress(path_);
    EXPECT_TRUE(address.ok());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address),
                        sizeof(*address)),
              0)
        << errno;
    return fd;
  }
  // Connects, and waits until the owner has it. Its fd there.
  std::pair<base::UniqueFd, int> ConnectAndFind() {
    const std::vector<int> before = owner_.fds();
    base::UniqueFd client = Connect();
    int found = -1;
    EXPECT_TRUE(Await([&] {
      for (const int fd : owner_.fds()) {
        if (std::find(before.begin(), before.end(), fd) == before.end())
          found = fd;
      }
      return found >= 0;
    }));
    return {std::move(client), found};
  }
  static bool Ended(const base::UniqueFd& client) {
    char byte = 0;
    return ::recv(client.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  testing::TemporaryDirectory directory_;
  const std::string path_;
  const std::unique_ptr<ipc::FdDisposer> disposer_ = *ipc::FdDisposer::Start();
  Owner owner_;
  std::unique_ptr<GrpcConnections> connections_;
};

TEST_F(GrpcConnectionsTest, AProofTellsTheProcessThatConnected) {
  auto [client, fd] = ConnectAndFind();
  EXPECT_EQ(connections_->Prove(NameOf(fd)).pid(), ::getpid());
  EXPECT_EQ(connections_->Prove("ipv4:127.0.0.1:80").pid(), 0);
  EXPECT_EQ(connections_->Prove("fd:99999").pid(), 0);
  EXPECT_EQ(connections_->Prove("").pid(), 0);
}

TEST_F(GrpcConnectionsTest, OneTooManyEndsTheOldestOfTheUnproved) {
  std::vector<base::UniqueFd> clients;
  for (size_t i = 0; i < kMost; ++i) clients.push_back(ConnectAndFind().first);
  EXPECT_FALSE(Ended(clients[0]));
  clients.push_back(ConnectAndFind().first);
  EXPECT_TRUE(Await([&] { return Ended(clients[0]); }));
  for (size_t i = 1; i < clients.size(); ++i) EXPECT_FALSE(Ended(clients[i]));
}

TEST_F(GrpcConnectionsTest, AProvedConnectionOutlivesAFlood) {
  const auto proved = ConnectAndFind();
  GrpcConnections::Proof proof = connections_->Prove(NameOf(proved.second));
  for (size_t i = 0; i < 20 * kMost; ++i) {
    const base::UniqueFd flood = Connect();
    owner_.CloseEnded();
  }
  const auto last = ConnectAndFind();
  EXPECT_FALSE(Ended(proved.first));
  // Once its call has ended it is one of the others.
  proof = {};
  std::vector<base::UniqueFd> more;
  for (size_t i = 0; i < kMost + 1; ++i) more.push_back(Connect());
  EXPECT_TRUE(Await([&] { return Ended(last.first); }));
  EXPECT_TRUE(Await([&] { return Ended(proved.first); }));
}

TEST_F(GrpcConnectionsTest, EndedConnectionsAreForgotten) {
  std::vector<base::UniqueFd> clients;
  for (size_t i = 0; i < kMost / 2; ++i)
    clients.push_back(ConnectAndFind().first);
  EXPECT_EQ(connections_->open(), clients.size());
  clients.clear();
  EXPECT_TRUE(Await([&] { return connections_->open() == 0; }));
}

// Moving proofs about counts each once.
TEST_F(GrpcConnectionsTest, AConnectionIsProvedWhileAnyProofLives) {
  auto [client, fd] = ConnectAndFind();
  GrpcConnections::Proof one = connections_->Prove(NameOf(fd));
  GrpcConnections::Proof two = connections_->Prove(NameOf(fd));
  GrpcConnections::Proof moved = std::move(one);
  two = GrpcConnections::Proof();
  std::vector<base::UniqueFd> others;
  for (size_t i = 0; i < 2 * kMost; ++i) others.push_back(Connect());
  EXPECT_TRUE(Await([&] { return Ended(others[0]); }));
  EXPECT_FALSE(Ended(client));
  moved = GrpcConnections::Proof();
}

// With no fd left peers are turned away, and let in again afterwards.
TEST_F(GrpcConnectionsTest, AShortageOfFdsPasses) {
  rlimit limits{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limits), 0);
  std::vector<base::UniqueFd> clients;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = ipc::SocketAddress(path_);
  ASSERT_TRUE(address.ok());
  const rlimit few{.rlim_cur = 256, .rlim_max = limits.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<base::UniqueFd> rest;
  do {
    rest.emplace_back(::dup(STDERR_FILENO));
  } while (rest.back().valid());
  for (const base::UniqueFd& client : clients) {
    EXPECT_EQ(
        ::connect(client.get(), reinterpret_cast<const sockaddr*>(&*address),
                  sizeof(*address)),
        0);
  }
  EXPECT_TRUE(Await(
      [&] { return std::all_of(clients.begin(), clients.end(), Ended); }));
  EXPECT_TRUE(owner_.fds().empty());
  rest.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limits), 0);
  auto [late, fd] = ConnectAndFind();
  EXPECT_EQ(connections_->Prove(NameOf(fd)).pid(), ::getpid());
}

// gRPC would wait for a peer that has ended its half, and does not read.
TEST_F(GrpcConnectionsTest, AHalfClosedConnectionIsEnded) {
  const auto [client, fd] = ConnectAndFind();
  ASSERT_EQ(::shutdown(client.get(), SHUT_WR), 0);
  EXPECT_TRUE(Await([&client = client] { return Ended(client); }));
  EXPECT_TRUE(Await([&] { return connections_->open() == 0; }));
}

TEST_F(GrpcConnectionsTest, AllAreHungUpOnAlsoAfterServingEnded) {
  const auto [client, fd] = ConnectAndFind();
  const auto proved = ConnectAndFind();
  const GrpcConnections::Proof proof =
      connections_->Prove(NameOf(proved.second));
  int hung_up = 0;
  const uint64_t adopted =
      connections_->Adopt(99'998, ::getpid(), [&] { ++hung_up; });
  connections_->Forget(connections_->Adopt(
      99'999, ::getpid(), [] { ADD_FAILURE() << "it had ended"; }));
  connections_->StopServing();
  EXPECT_FALSE(Ended(client));
  EXPECT_FALSE(Ended(proved.first));
  connections_->HangUp();
  EXPECT_TRUE(Ended(client));
  EXPECT_TRUE(Ended(proved.first));
  EXPECT_EQ(hung_up, 1);
  connections_->Forget(adopted);
}

TEST_F(GrpcConnectionsTest, NobodyIsLetInAfterServingEnded) {
  connections_->StopServing();
  const base::UniqueFd client = Connect();
  EXPECT_TRUE(owner_.fds().empty());
  connections_.reset();
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace gmb::broker
