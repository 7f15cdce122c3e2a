#include "ipc/seqpacket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "tests/ipc/open_fds.h"

namespace gmb::ipc {
namespace {

using ::gmb::testing::OpenFds;

constexpr absl::Duration kLong = absl::Seconds(30);

struct Pair {
  SeqpacketSocket left;
  SeqpacketSocket right;
};

Pair MakePair() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
  return {SeqpacketSocket(base::UniqueFd(fds[0])),
          SeqpacketSocket(base::UniqueFd(fds[1]))};
}

std::vector<int> Repeat(int fd, size_t times) {
  return std::vector<int>(times, fd);
}

ino_t InodeOf(int fd) {
  struct stat info {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return info.st_ino;
}

// Runs `body` in a child that exits with what it returns.
template <typename Body>
pid_t Fork(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

int WaitForExit(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Lowers the number of fds that this process may open, for a scope.
class FdLimit {
 public:
  explicit FdLimit(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit now = before_;
    now.rlim_cur = limit;
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  FdLimit(const FdLimit&) = delete;
  FdLimit& operator=(const FdLimit&) = delete;
  ~FdLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

int LowestFreeFd() {
  const base::UniqueFd probe(::dup(STDERR_FILENO));
  return probe.get();
}

TEST(SeqpacketSocketTest, CarriesPacketsWholeAndInOrder) {
  Pair pair = MakePair();
  ASSERT_TRUE(*pair.left.TrySend("one", {}));
  ASSERT_TRUE(*pair.left.TrySend("three", {}));
  EXPECT_EQ((*pair.right.TryReceive())->bytes, "one");
  EXPECT_EQ((*pair.right.TryReceive())->bytes, "three");
  EXPECT_FALSE(pair.right.TryReceive()->has_value());
}

TEST(SeqpacketSocketTest, CarriesFdsThatAreCloseOnExecAndTheSameFile) {
  Pair pair = MakePair();
  const base::UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_TRUE(*pair.left.TrySend("x", {file.get()}));
  const absl::StatusOr<Packet> packet = pair.right.Receive(kLong);
  ASSERT_TRUE(packet.ok()) << packet.status();
  ASSERT_EQ(packet->fds.size(), 1U);
  EXPECT_EQ(InodeOf(packet->fds[0].get()), InodeOf(file.get()));
  EXPECT_EQ(::fcntl(packet->fds[0].get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_FALSE(packet->credentials.has_value());
}

TEST(SeqpacketSocketTest, MakesItsFdNonBlockingAndCloseOnExec) {
  const Pair pair = MakePair();
  EXPECT_NE(::fcntl(pair.left.fd(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(pair.left.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SeqpacketSocketTest, CarriesTheLargestPacketWithTheMostFdsAndCredentials) {
  Pair pair = MakePair();
  ASSERT_TRUE(pair.right.EnableCredentials().ok());
  const std::string bytes(kMaxPacketBytes, 'z');
  const size_t before = OpenFds();
  ASSERT_TRUE(*pair.left.TrySend(bytes, Repeat(STDERR_FILENO, kMaxFds), true));
  {
    const absl::StatusOr<Packet> packet = pair.right.Receive(kLong);
    ASSERT_TRUE(packet.ok()) << packet.status();
    EXPECT_EQ(packet->bytes, bytes);
    EXPECT_EQ(packet->fds.size(), kMaxFds);
    ASSERT_TRUE(packet->credentials.has_value());
    EXPECT_EQ(packet->credentials->pid, ::getpid());
    EXPECT_EQ(OpenFds(), before + kMaxFds);
  }
  EXPECT_EQ(OpenFds(), before);
}

TEST(SeqpacketSocketTest, RefusesToSendWhatIsTooMuchOrNothing) {
  Pair pair = MakePair();
  const auto code = [&](const std::string& bytes, size_t fds) {
    return pair.left.TrySend(bytes, Repeat(STDERR_FILENO, fds)).status().code();
  };
  EXPECT_EQ(code("x", kMaxFds + 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(std::string(kMaxPacketBytes + 1, 'x'), 0),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("", 1), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(pair.right.TryReceive()->has_value());
}

TEST(SeqpacketSocketTest, RefusesAPacketThatIsTooLargeAndReceivesTheNext) {
  Pair pair = MakePair();
  const std::string large(kMaxPacketBytes + 1, 'x');
  ASSERT_EQ(::send(pair.left.fd(), large.data(), large.size(), 0),
            static_cast<ssize_t>(large.size()));
  ASSERT_TRUE(*pair.left.TrySend("next", {}));
  EXPECT_EQ(pair.right.TryReceive().status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*pair.right.TryReceive())->bytes, "next");
}

TEST(SeqpacketSocketTest,
     RefusesTruncatedControlDataAndClosesTheFdsThatArrived) {
  Pair pair = MakePair();
  const size_t before = OpenFds();
  ASSERT_TRUE(*pair.left.TrySend("x", Repeat(STDERR_FILENO, 10)));
  ASSERT_TRUE(*pair.left.TrySend("next", {}));
  {
    const FdLimit limit(LowestFreeFd() + 3);
    EXPECT_EQ(pair.right.TryReceive().status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(OpenFds(), before);
  EXPECT_EQ((*pair.right.TryReceive())->bytes, "next");
}

TEST(SeqpacketSocketTest, RefusesControlDataWhenNotOneFdCanBeReceived) {
  Pair pair = MakePair();
  const size_t before = OpenFds();
  ASSERT_TRUE(*pair.left.TrySend("x", Repeat(STDERR_FILENO, 2)));
  {
    const FdLimit limit(LowestFreeFd());
    EXPECT_EQ(pair.right.TryReceive().status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(OpenFds(), before);
}

TEST(SeqpacketSocketTest, TellsAHangUpAfterThePacketsSentBefore) {
  Pair pair = MakePair();
  ASSERT_TRUE(*pair.left.TrySend("last", {}));
  { const SeqpacketSocket gone = std::move(pair.left); }
  EXPECT_EQ((*pair.right.TryReceive())->bytes, "last");
  EXPECT_EQ(pair.right.TryReceive().status().code(),
            absl::StatusCode::kUnavailable);
  // And it raises no signal.
  EXPECT_EQ(pair.right.TrySend("x", {}).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(pair.right.Receive(kLong).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(SeqpacketSocketTest, AwaitsAHangUpAndTakesNothing) {
  Pair pair = MakePair();
  ASSERT_TRUE(*pair.left.TrySend("last", {}));
  EXPECT_FALSE(pair.right.AwaitHangUp(absl::ZeroDuration()));
  EXPECT_FALSE(pair.right.AwaitHangUp(absl::Milliseconds(10)));
  std::thread closing(
      [&] { const SeqpacketSocket gone = std::move(pair.left); });
  EXPECT_TRUE(pair.right.AwaitHangUp(kLong));
  closing.join();
  EXPECT_EQ((*pair.right.TryReceive())->bytes, "last");
}

TEST(SeqpacketSocketTest, ReceivesWhatAPeerSentBeforeItLeftOurPacketsUnread) {
  Pair pair = MakePair();
  ASSERT_TRUE(*pair.right.TrySend("never read", {}));
  ASSERT_TRUE(*pair.left.TrySend("last", {}));
  {
    const SeqpacketSocket gone = std::move(pair.left);
  }  // the kernel calls this a reset
  EXPECT_EQ((*pair.right.TryReceive())->bytes, "last");
  EXPECT_EQ(pair.right.TryReceive().status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(SeqpacketSocketTest, AShutDownSocketIsAHangUpForBothEnds) {
  Pair pair = MakePair();
  pair.left.Shutdown();
  EXPECT_EQ(pair.right.TryReceive().status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(pair.left.TryReceive().status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(pair.left.TrySend("x", {}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(SeqpacketSocketTest, AFullSocketIsFullUntilThePeerReads) {
  Pair pair = MakePair();
  const std::string bytes(kMaxPacketBytes, 'x');
  size_t sent = 0;
  while (*pair.left.TrySend(bytes, {})) ++sent;
  ASSERT_GT(sent, 0U);
  EXPECT_EQ(pair.left.Send(bytes, {}, false, absl::Milliseconds(20)).code(),
            absl::StatusCode::kDeadlineExceeded);
  for (size_t i = 0; i < sent; ++i) EXPECT_TRUE(pair.right.Receive(kLong).ok());
  EXPECT_FALSE(pair.right.TryReceive()->has_value());
  EXPECT_TRUE(pair.left.Send(bytes, {}, false, kLong).ok());
}

TEST(SeqpacketSocketTest, WaitsForAPacketUntilItsDeadline) {
  Pair pair = MakePair();
  EXPECT_EQ(pair.right.Receive(absl::ZeroDuration()).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(pair.right.Receive(absl::Milliseconds(10)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  std::thread sender(
      [&] { EXPECT_TRUE(pair.left.Send("late", {}, false, kLong).ok()); });
  const absl::StatusOr<Packet> packet =
      pair.right.Receive(absl::InfiniteDuration());
  sender.join();
  ASSERT_TRUE(packet.ok());
  EXPECT_EQ(packet->bytes, "late");
}

TEST(SeqpacketSocketTest, ShowsWhichProcessSentAPacketAlsoWithoutItsHelp) {
  Pair pair = MakePair();
  ASSERT_TRUE(pair.right.EnableCredentials().ok());
  // The child inherits the socket: SO_PEERCRED still names the parent.
  const pid_t child =
      Fork([&] { return *pair.left.TrySend("child", {}) ? 0 : 1; });
  EXPECT_EQ(WaitForExit(child), 0);
  const absl::StatusOr<Packet> packet = pair.right.Receive(kLong);
  ASSERT_TRUE(packet.ok());
  ASSERT_TRUE(packet->credentials.has_value());
  EXPECT_EQ(packet->credentials->pid, child);
  EXPECT_EQ(packet->credentials->uid, ::geteuid());
  ASSERT_TRUE(pair.right.peer().ok());
  EXPECT_EQ(pair.right.peer()->pid, ::getpid());
}

TEST(SeqpacketSocketTest, AKilledProcessHangsUp) {
  Pair pair = MakePair();
  const pid_t child = Fork([&] {
    pair.right = SeqpacketSocket(base::UniqueFd());
    ::pause();
    return 0;
  });
  { const SeqpacketSocket mine = std::move(pair.left); }
  ASSERT_FALSE(pair.right.TryReceive()->has_value());
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  EXPECT_EQ(pair.right.Receive(kLong).status().code(),
            absl::StatusCode::kUnavailable);
  WaitForExit(child);
}

// A sender that does what it likes with sendmsg.
TEST(SeqpacketSocketTest, SurvivesGarbageWithoutLeakingFds) {
  Pair pair = MakePair();
  ASSERT_TRUE(pair.right.EnableCredentials().ok());
  const size_t before = OpenFds();
  std::mt19937 random(20240611);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % (random() % 8 == 0 ? 100'000 : 64), '\0');
    std::generate(bytes.begin(), bytes.end(),
                  [&] { return static_cast<char>(random()); });
    const size_t fds = random() % 4 == 0 ? random() % (kMaxFds + 1) : 0;
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
    iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (fds > 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(fds * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds * sizeof(int));
      const std::vector<int> sent = Repeat(STDERR_FILENO, fds);
      std::copy(sent.begin(), sent.end(),
                reinterpret_cast<int*>(CMSG_DATA(header)));
    }
    ASSERT_GE(::sendmsg(pair.left.fd(), &message, MSG_NOSIGNAL), 0);
    const absl::StatusOr<std::optional<Packet>> packet =
        pair.right.TryReceive();
    if (bytes.empty()) {
      EXPECT_EQ(packet.status().code(), absl::StatusCode::kUnavailable);
    } else if (bytes.size() > kMaxPacketBytes) {
      EXPECT_EQ(packet.status().code(), absl::StatusCode::kInvalidArgument);
    } else {
      ASSERT_TRUE(packet.ok()) << packet.status();
      EXPECT_EQ((*packet)->bytes, bytes);
      EXPECT_EQ((*packet)->fds.size(), fds);
    }
  }
  EXPECT_EQ(OpenFds(), before);
}

}  // namespace
}  // namespace gmb::ipc
