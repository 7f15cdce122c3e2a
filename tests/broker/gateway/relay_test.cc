#include "broker/gateway/relay.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "ipc/foreign_fds.h"
#include "ipc/seqpacket.h"
#include "tests/broker/gateway/frames.h"
#include "tests/ipc/open_fds.h"

namespace gmb::broker {
namespace {

constexpr FrameGuard::Time kNow{std::chrono::hours(1)};

std::pair<ipc::UniqueFd, ipc::UniqueFd> StreamPair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                         ends.data()),
            0);
  return {ipc::UniqueFd(ends[0]), ipc::UniqueFd(ends[1])};
}

uint32_t Ready(int fd, uint32_t wanted) {
  pollfd entry{.fd = fd, .events = static_cast<int16_t>(wanted), .revents = 0};
  return ::poll(&entry, 1, 0) == 1 ? static_cast<uint32_t>(entry.revents) : 0;
}

// As much as there is.
std::string ReadAll(const ipc::UniqueFd& fd) {
  std::string all;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0)
    all.append(buffer.data(), static_cast<size_t>(got));
  return all;
}
// As much as there is room for.
size_t WriteAll(const ipc::UniqueFd& fd, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t more = ::send(fd.get(), bytes.data() + sent,
                                bytes.size() - sent, MSG_NOSIGNAL);
    if (more <= 0) break;
    sent += static_cast<size_t>(more);
  }
  return sent;
}

// Parameter: whether the kernel refuses fds on the client's socket.
class RelayTest : public ::testing::TestWithParam<bool> {
 protected:
  RelayTest() {
    auto [client, relay_client] = StreamPair();
    auto [grpc, relay_grpc] = StreamPair();
    client_ = std::move(client);
    grpc_ = std::move(grpc);
    refused_ = GetParam() && ipc::RefuseFds(relay_client.get());
    relay_.emplace(std::move(relay_client), std::move(relay_grpc));
  }
  void SetUp() override {
    if (GetParam() && !refused_)
      GTEST_SKIP() << "SO_PASSRIGHTS needs Linux 6.16";
  }

  // Serves both ends once, as the gateway does.
  absl::Status Turn() {
    if (relay_->client_events() != 0) {
      const uint32_t ready =
          Ready(relay_->client_fd(), relay_->client_events());
      if (ready != 0) {
        if (absl::Status s = relay_->OnClientReady(ready, kNow); !s.ok())
          return s;
      }
    }
    if (relay_->grpc_events() == 0) return absl::OkStatus();
    const uint32_t ready = Ready(relay_->grpc_fd(), relay_->grpc_events());
    return ready == 0 ? absl::OkStatus() : relay_->OnGrpcReady(ready);
  }
  absl::Status Turns(int times) {
    absl::Status status;
    for (int i = 0; status.ok() && i < times; ++i) status = Turn();
    return status;
  }
  void SendWithFd(const std::string& bytes) {
    ipc::SeqpacketSocket sender(ipc::UniqueFd(::dup(client_.get())));
    const int fd = STDERR_FILENO;
    (void)sender.TrySend(bytes, {&fd, 1});
  }

  ipc::UniqueFd client_;
  ipc::UniqueFd grpc_;
  bool refused_ = false;
  std::optional<Relay> relay_;
};

TEST_P(RelayTest, CarriesBytesBothWaysWhateverTheirSize) {
  const unsigned seed = 4711;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::string up = kPreface;
  while (up.size() < 3'000'000)
    up += Frame(FrameHeader::kData, 0, 1, 1 + random() % 16'000);
  std::string down;
  while (down.size() < 3'000'000)
    down += Frame(FrameHeader::kData, 0, 1, 1 + random() % 16'000);
  std::string came_up;
  std::string came_down;
  size_t sent_up = 0;
  size_t sent_down = 0;
  for (int i = 0; i < 100'000 && (came_up.size() < up.size() ||
                                  came_down.size() < down.size());
       ++i) {
    sent_up += WriteAll(client_, up.substr(sent_up, random() % 300'000));
    sent_down += WriteAll(grpc_, down.substr(sent_down, random() % 300'000));
    ASSERT_TRUE(Turns(1 + static_cast<int>(random() % 8)).ok());
    if (random() % 3 == 0) came_up += ReadAll(grpc_);
    if (random() % 3 == 0) came_down += ReadAll(client_);
  }
  EXPECT_TRUE(came_up == up);
  EXPECT_TRUE(came_down == down);
}

TEST_P(RelayTest, AClientThatDoesNotReadIsNotReadEither) {
  ASSERT_EQ(WriteAll(client_, kPreface), kPreface.size());
  ASSERT_TRUE(Turns(2).ok());
  const std::string answer = Frame(FrameHeader::kData, 0, 1, 16'000);
  for (int i = 0; i < 1000; ++i) {
    (void)WriteAll(grpc_, answer);
    ASSERT_TRUE(Turn().ok());
  }
  EXPECT_EQ(relay_->client_events(), static_cast<uint32_t>(EPOLLOUT));
  (void)ReadAll(grpc_);
  const std::string ping = Frame(FrameHeader::kPing, 0, 0, 8);
  ASSERT_EQ(WriteAll(client_, ping), ping.size());
  ASSERT_TRUE(Turns(100).ok());
  EXPECT_EQ(ReadAll(grpc_), "");
  // It reads again: all goes on.
  std::string came_up;
  for (int i = 0; i < 1000; ++i) {
    (void)ReadAll(client_);
    ASSERT_TRUE(Turn().ok());
    came_up += ReadAll(grpc_);
  }
  EXPECT_EQ(came_up, ping);
}

TEST_P(RelayTest, WhatBreaksABoundDoesNotReachGrpc) {
  ASSERT_EQ(WriteAll(client_, kPreface + Headers(1)), kPreface.size() + 49);
  ASSERT_TRUE(Turns(2).ok());
  (void)ReadAll(grpc_);
  ASSERT_GT(WriteAll(client_, Frame(FrameHeader::kHeaders, 0, 3, 16'000) +
                                  Frame(FrameHeader::kContinuation, 0, 3, 400)),
            0U);
  EXPECT_TRUE(absl::IsResourceExhausted(Turns(100)));
}

TEST_P(RelayTest, FdsOfAClientEndItsConnection) {
  const size_t before = gmb::testing::OpenFds();
  ASSERT_EQ(WriteAll(client_, kPreface), kPreface.size());
  ASSERT_TRUE(Turns(2).ok());
  SendWithFd(Frame(FrameHeader::kPing, 0, 0, 8));
  // Where the kernel refuses them the sender learns it, and nothing is sent.
  const absl::Status status = Turns(100);
  EXPECT_EQ(status.code(), refused_ ? absl::StatusCode::kOk
                                    : absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadAll(grpc_), kPreface);
  EXPECT_EQ(gmb::testing::OpenFds(), before);
}

TEST_P(RelayTest, TheLastWordsOfGrpcReachTheClient) {
  ASSERT_EQ(WriteAll(client_, kPreface), kPreface.size());
  ASSERT_TRUE(Turns(2).ok());
  const std::string last = Frame(FrameHeader::kData, 0, 1, 10'000);
  size_t sent = 0;
  for (int i = 0; i < 10; ++i) sent += WriteAll(grpc_, last);
  grpc_.reset();
  // gRPC takes nothing more.
  (void)WriteAll(client_, Frame(FrameHeader::kPing, 0, 0, 8));
  std::string came;
  absl::Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    status = Turn();
    came += ReadAll(client_);
  }
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(came.size(), sent);
}

TEST_P(RelayTest, AHangUpOfTheClientIsSeenAfterItsLastWords) {
  const std::string words = kPreface + Headers(1);
  ASSERT_EQ(WriteAll(client_, words), words.size());
  client_.reset();
  EXPECT_TRUE(absl::IsCancelled(Turns(100)));
  relay_.reset();
  EXPECT_EQ(ReadAll(grpc_), words);
}

TEST_P(RelayTest, AClientThatIsGoneIsNoticedWhileItsAnswersWait) {
  for (int i = 0; i < 1000; ++i) {
    (void)WriteAll(grpc_, Frame(FrameHeader::kData, 0, 1, 16'000));
    ASSERT_TRUE(Turn().ok());
  }
  client_.reset();
  EXPECT_TRUE(absl::IsCancelled(Turns(10)));
}

INSTANTIATE_TEST_SUITE_P(Kernels, RelayTest, ::testing::Bool(),
                         [](const auto& refuses) {
                           return refuses.param ? "RefusesFds" : "PassesFds";
                         });

}  // namespace
}  // namespace gmb::broker
