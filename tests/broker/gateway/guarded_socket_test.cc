#include "broker/gateway/guarded_socket.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "broker/gateway/grpc_system_calls.h"
#include "ipc/foreign_fds.h"
#include "ipc/seqpacket.h"
#include "tests/broker/gateway/frames.h"
#include "tests/ipc/open_fds.h"
#include "tests/ipc/send_fd.h"

namespace gmb::broker {
namespace {

// The events of a socket that epoll tells gRPC.
class Edges {
 public:
  explicit Edges(const base::UniqueFd& socket)
      : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event wanted{};
    wanted.events = EPOLLIN | EPOLLOUT | EPOLLET;
    EXPECT_EQ(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &wanted),
              0);
  }
  // 0: there is none.
  [[nodiscard]] uint32_t Next() const {
    epoll_event event{};
    return ::epoll_wait(epoll_.get(), &event, 1, 0) == 1 ? event.events : 0;
  }

 private:
  base::UniqueFd epoll_;
};

// Plays gRPC at the other end of a client's socket: by the C library's calls.
// Parameter: whether the kernel refuses fds on the client's socket.
class GuardedSocketTest : public ::testing::TestWithParam<bool> {
 protected:
  GuardedSocketTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                           0, ends.data()),
              0);
    client_.reset(ends[0]);
    grpc_.reset(ends[1]);
    refused_ = GetParam() && ipc::RefuseFds(ends[1]);
    socket_ = std::make_shared<GuardedSocket>(ends[1], calls_, disposer_.get(),
                                              "tenants/a", [this] { ++news_; });
    EXPECT_TRUE(GuardUntilClosed(ends[1], socket_).ok());
  }
  void SetUp() override {
    if (GetParam() && !refused_)
      GTEST_SKIP() << "SO_PASSRIGHTS needs Linux 6.16";
  }

  static bool Write(const base::UniqueFd& fd, const std::string& bytes) {
    return ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // As gRPC does, in pieces of odd sizes. Empty: errno says why.
  std::string GrpcReads(size_t most = 1 << 20) const {
    std::string one(1 + most / 3, '\0');
    std::string two(most, '\0');
    std::array<iovec, 2> buffers{iovec{one.data(), one.size()},
                                 iovec{two.data(), two.size()}};
    msghdr message{};
    message.msg_iov = buffers.data();
    message.msg_iovlen = buffers.size();
    const ssize_t got = ::recvmsg(grpc_.get(), &message, 0);
    if (got <= 0) return "";
    return (one + two).substr(0, static_cast<size_t>(got));
  }
  std::string GrpcReadsAll() const {
    std::string all;
    while (true) {
      const std::string more = GrpcReads();
      if (more.empty()) return all;
      all += more;
    }
  }
  bool GrpcWrites(const std::string& bytes) const {
    iovec buffer{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &buffer;
    message.msg_iovlen = 1;
    return ::sendmsg(grpc_.get(), &message, MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  std::string ClientReads() const {
    std::array<char, 65536> buffer{};
    const ssize_t got =
        ::recv(client_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    return {buffer.data(), got > 0 ? static_cast<size_t>(got) : 0};
  }
  void SendWithFd(const std::string& bytes) const {
    ipc::SeqpacketSocket sender(base::UniqueFd(::dup(client_.get())));
    const int fd = STDERR_FILENO;
    (void)sender.TrySend(bytes, {&fd, 1});
  }

  // As its guard has it, and never more.
  const std::shared_ptr<CallPace> calls_ = std::make_shared<CallPace>(80, 0);
  std::unique_ptr<ipc::FdDisposer> disposer_ = *ipc::FdDisposer::Start();
  int news_ = 0;
  bool refused_ = false;
  std::shared_ptr<GuardedSocket> socket_;
  base::UniqueFd client_;
  base::UniqueFd grpc_;
};

TEST_P(GuardedSocketTest, BytesPassWhateverTheirSize) {
  const unsigned seed = 4711;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::string up = kPreface;
  while (up.size() < 1'000'000)
    up += Frame(FrameHeader::kData, 0, 1, 1 + random() % 16'000);
  size_t sent = 0;
  std::string came;
  for (int i = 0; i < 100'000 && came.size() < up.size(); ++i) {
    const std::string piece = up.substr(sent, random() % 100'000);
    const ssize_t more =
        ::send(client_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (more > 0) sent += static_cast<size_t>(more);
    const std::string got = GrpcReads(1 + random() % 40'000);
    EXPECT_LE(got.size(), GuardedSocket::kMostRead);
    came += got;
  }
  EXPECT_TRUE(came == up);
  EXPECT_TRUE(socket_->breach().ok());
}

TEST_P(GuardedSocketTest, AClientThatDoesNotReadIsNotReadEither) {
  ASSERT_TRUE(Write(client_, kPreface));
  EXPECT_EQ(GrpcReads(), kPreface);
  const std::string answer = Frame(FrameHeader::kData, 0, 1, 16'000);
  while (GrpcWrites(answer)) {
  }
  const std::string ping = Frame(FrameHeader::kPing, 0, 0, 8);
  ASSERT_TRUE(Write(client_, ping));
  EXPECT_EQ(GrpcReads(), "");
  EXPECT_EQ(errno, EAGAIN);

  // Once the client reads on, an edge of epoll tells gRPC to try again.
  const Edges edges(grpc_);
  ASSERT_NE(edges.Next(), 0U);  // as it stands
  ASSERT_EQ(edges.Next(), 0U);
  std::string came;
  while (came.empty() && !ClientReads().empty()) {
    const uint32_t events = edges.Next();
    if (events == 0) continue;
    EXPECT_NE(events & EPOLLIN, 0U);
    came += GrpcReads();
  }
  EXPECT_EQ(came, ping);
}

TEST_P(GuardedSocketTest, GrpcDoesNotSeeWhatBreaksABound) {
  ASSERT_TRUE(Write(client_, kPreface + Headers(1)));
  EXPECT_EQ(GrpcReads(), kPreface + Headers(1));
  ASSERT_TRUE(Write(client_, Frame(FrameHeader::kHeaders, 0, 3, 16'000) +
                                 Frame(FrameHeader::kContinuation, 0, 3, 400)));
  (void)GrpcReadsAll();
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_TRUE(absl::IsResourceExhausted(socket_->breach()));
  EXPECT_EQ(news_, 1);
  // Nor anything after it.
  (void)Write(client_, Frame(FrameHeader::kPing, 0, 0, 8));
  EXPECT_EQ(GrpcReadsAll(), "");
}

// A stream that gRPC ended makes room for another.
TEST_P(GuardedSocketTest, TheGuardSeesWhatGrpcAnswers) {
  ASSERT_TRUE(Write(client_, kPreface));
  EXPECT_EQ(GrpcReads(), kPreface);
  for (uint32_t i = 0; i < 70; ++i) {
    ASSERT_TRUE(Write(client_, Headers(2 * i + 1)));
    EXPECT_EQ(GrpcReads(), Headers(2 * i + 1));
    if (i >= 60) continue;
    ASSERT_TRUE(GrpcWrites(Frame(
        FrameHeader::kHeaders,
        FrameHeader::kEndHeaders | FrameHeader::kEndStream, 2 * i + 1, 10)));
  }
  EXPECT_TRUE(socket_->breach().ok()) << socket_->breach();
}

// Of the tenant's, so of others of its connections too.
TEST_P(GuardedSocketTest, ACallBeyondThePaceWaitsAndWhatIsBeforeItDoesNot) {
  const std::string data = Frame(FrameHeader::kData, 0, 1, 40);
  ASSERT_TRUE(Write(client_, kPreface));
  EXPECT_EQ(GrpcReads(), kPreface);
  calls_->Count(81, std::chrono::steady_clock::now());
  ASSERT_TRUE(Write(client_, data + data + Headers(3) + data));
  EXPECT_EQ(GrpcReads(), data + data);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(GrpcReads(), "");
    EXPECT_EQ(errno, EAGAIN);
  }
  EXPECT_EQ(news_, 1) << "told once that it waits";

  // Once it is its turn a new try reaches gRPC by an edge of epoll, as often as
  // it takes.
  const Edges edges(grpc_);
  ASSERT_NE(edges.Next(), 0U);  // as it stands
  EXPECT_TRUE(socket_->TryAgain());
  EXPECT_EQ(edges.Next(), 0U);
  calls_->Count(-2, std::chrono::steady_clock::now());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(edges.Next(), 0U);
    EXPECT_TRUE(socket_->TryAgain());
    EXPECT_NE(edges.Next() & EPOLLIN, 0U);
  }
  EXPECT_EQ(GrpcReads(), Headers(3) + data);
  EXPECT_FALSE(socket_->TryAgain()) << "nothing waits";
  EXPECT_TRUE(socket_->breach().ok()) << socket_->breach();
}

TEST_P(GuardedSocketTest, ACallThatWaitsDoesNotHideAHangUp) {
  ASSERT_TRUE(Write(client_, kPreface));
  EXPECT_EQ(GrpcReads(), kPreface);
  calls_->Count(81, std::chrono::steady_clock::now());
  // A part of it has been read before.
  ASSERT_TRUE(Write(client_, Headers(1).substr(0, 3)));
  EXPECT_EQ(GrpcReads(), Headers(1).substr(0, 3));
  ASSERT_TRUE(Write(client_, Headers(1).substr(3)));
  EXPECT_EQ(GrpcReads(), "");
  EXPECT_EQ(errno, EAGAIN);
  socket_->HangUp();
  EXPECT_EQ(GrpcReads(), "");
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_P(GuardedSocketTest, ACallOfAClientThatHasGoneDoesNotWait) {
  ASSERT_TRUE(Write(client_, kPreface));
  EXPECT_EQ(GrpcReads(), kPreface);
  calls_->Count(81, std::chrono::steady_clock::now());
  const std::string data = Frame(FrameHeader::kData, 0, 1, 40);
  ASSERT_TRUE(Write(client_, data + Headers(3)));
  client_.reset();
  EXPECT_EQ(GrpcReads(), data);
  EXPECT_EQ(GrpcReads(), "");
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_P(GuardedSocketTest, FdsOfAClientEndItsConnection) {
  const size_t before = gmb::testing::OpenFds();
  ASSERT_TRUE(Write(client_, kPreface));
  EXPECT_EQ(GrpcReads(), kPreface);
  SendWithFd(Frame(FrameHeader::kPing, 0, 0, 8));
  // Where the kernel refuses them the sender learns it, and nothing is sent.
  EXPECT_EQ(GrpcReadsAll(), "");
  EXPECT_EQ(errno, refused_ ? EAGAIN : ECONNRESET);
  EXPECT_EQ(
      socket_->breach().code(),
      refused_ ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(gmb::testing::OpenFds(), before);
}

// An urgent byte is not in its place of the stream: a read could drop it, with
// its fds, where a look has not seen them.
TEST_P(GuardedSocketTest, FdsOfAnUrgentByteEndItsConnectionToo) {
  const size_t before = gmb::testing::OpenFds();
  ASSERT_TRUE(Write(client_, kPreface));
  EXPECT_EQ(GrpcReads(), kPreface);
  const int error =
      gmb::testing::SendFd(client_.get(), 'x', STDERR_FILENO, MSG_OOB);
  if (error == EOPNOTSUPP)
    GTEST_SKIP() << "this kernel has no urgent bytes on Unix sockets";
  EXPECT_EQ(error != 0, refused_);
  ASSERT_TRUE(Write(client_, Frame(FrameHeader::kPing, 0, 0, 8)));
  (void)GrpcReadsAll();
  EXPECT_EQ(
      socket_->breach().code(),
      refused_ ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(gmb::testing::OpenFds(), before);
}

TEST_P(GuardedSocketTest, AHangUpEndsReadsAndReachesTheClient) {
  ASSERT_TRUE(Write(client_, kPreface));
  socket_->HangUp();
  EXPECT_EQ(GrpcReads(), "");
  EXPECT_EQ(errno, ECONNRESET);
  char byte = 0;
  EXPECT_EQ(::recv(client_.get(), &byte, 1, 0), 0);
}

TEST_P(GuardedSocketTest, TheDisposerClosesIt) {
  const size_t before = gmb::testing::OpenFds();
  grpc_.reset();
  EXPECT_TRUE(socket_->closed());
  EXPECT_EQ(news_, 1);
  while (disposer_->waiting() > 0) std::this_thread::yield();
  EXPECT_EQ(gmb::testing::OpenFds(), before - 1);
  socket_->HangUp();  // another fd may have the number now
}

TEST_P(GuardedSocketTest, ItOutlivesDisposerAndGateway) {
  const size_t before = gmb::testing::OpenFds();
  socket_->Leave();
  disposer_.reset();
  grpc_.reset();
  EXPECT_EQ(gmb::testing::OpenFds(), before - 1);
  EXPECT_EQ(news_, 0);
  EXPECT_TRUE(socket_->closed());
}

TEST_P(GuardedSocketTest, OtherFdsAreLeftAlone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const base::UniqueFd here(ends[0]);
  const base::UniqueFd there(ends[1]);
  ASSERT_TRUE(Write(here, "not HTTP/2"));
  std::array<char, 32> bytes{};
  iovec buffer{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &buffer;
  message.msg_iovlen = 1;
  EXPECT_EQ(::recvmsg(there.get(), &message, 0), 10);
  EXPECT_EQ(::close(-1), -1);
  EXPECT_EQ(errno, EBADF);
}

INSTANTIATE_TEST_SUITE_P(Kernels, GuardedSocketTest, ::testing::Bool(),
                         [](const auto& refuses) {
                           return refuses.param ? "RefusesFds" : "PassesFds";
                         });

}  // namespace
}  // namespace gmb::broker
