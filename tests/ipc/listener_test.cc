#include "ipc/listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "ipc/seqpacket.h"
#include "ipc/socket_path.h"
#include "tests/ipc/open_fds.h"
#include "tests/ipc/temporary_directory.h"

namespace gmb::ipc {
namespace {

using ::gmb::testing::OpenFds;
using ::gmb::testing::TemporaryDirectory;

constexpr absl::Duration kLong = absl::Seconds(30);

// A socket file that nobody listens on, as a killed process leaves it.
void LeaveStaleSocket(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    const absl::StatusOr<Listener> listener =
        Listener::Listen(path, 0600, SocketType::kSeqpacket);
    ::_exit(listener.ok() ? 0 : 1);  // no destructor runs
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

TEST(ListenerTest, AcceptsAPeerAndKnowsItsCredentials) {
  const TemporaryDirectory directory;
  absl::StatusOr<Listener> listener =
      Listener::Listen(directory.File("s"), 0600, SocketType::kSeqpacket);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_FALSE(listener->TryAccept()->has_value());
  absl::StatusOr<SeqpacketSocket> client =
      SeqpacketSocket::Connect(directory.File("s"), kLong);
  ASSERT_TRUE(client.ok()) << client.status();
  absl::StatusOr<std::optional<base::UniqueFd>> accepted =
      listener->TryAccept();
  ASSERT_TRUE(accepted.ok() && accepted->has_value());
  SeqpacketSocket socket(*std::move(*accepted));
  const absl::StatusOr<PeerCredentials> peer = socket.peer();
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(*peer, (PeerCredentials{::getpid(), ::geteuid(), ::getegid()}));
  ASSERT_TRUE(socket.Send("hi", {}, false, kLong).ok());
  EXPECT_EQ(client->Receive(kLong)->bytes, "hi");
}

TEST(ListenerTest, GivesItsSocketTheModeAskedFor) {
  const TemporaryDirectory directory;
  for (const mode_t mode : {0600, 0660, 0666}) {
    const absl::StatusOr<Listener> listener =
        Listener::Listen(directory.File("s"), mode, SocketType::kSeqpacket);
    ASSERT_TRUE(listener.ok());
    struct stat info {};
    ASSERT_EQ(::stat(directory.File("s").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, mode);
  }
}

// A stranger who owns the directory puts links where sockets are made. In every
// case nothing but a socket of ours gets another mode.
TEST(ListenerTest, DoesNotFollowALinkThatIsSwappedIn) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("s");
  const std::string target = directory.File("target");
  const std::string link = directory.File("link");
  std::ofstream(target) << "precious";
  ASSERT_EQ(::chmod(target.c_str(), 0600), 0);
  std::atomic<bool> stop = false;
  std::thread stranger([&] {
    while (!stop) {
      (void)::symlink(target.c_str(), link.c_str());
      (void)::rename(link.c_str(), path.c_str());
      (void)::unlink(path.c_str());
    }
  });
  for (int i = 0; i < 2000; ++i) {
    (void)Listener::Listen(path, 0666, SocketType::kSeqpacket);
  }
  stop = true;
  stranger.join();
  struct stat info {};
  ASSERT_EQ(::stat(target.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST(ListenerTest, AClosedListenerHangsUpOnItsBacklog) {
  const TemporaryDirectory directory;
  absl::StatusOr<Listener> listener =
      Listener::Listen(directory.File("s"), 0600, SocketType::kSeqpacket);
  ASSERT_TRUE(listener.ok());
  absl::StatusOr<SeqpacketSocket> waiting =
      SeqpacketSocket::Connect(directory.File("s"), kLong);
  ASSERT_TRUE(waiting.ok());
  { const base::UniqueFd closed = std::move(*listener).Close(); }
  EXPECT_TRUE(absl::IsUnavailable(waiting->Receive(kLong).status()));
  EXPECT_EQ(*InspectSocketPath(directory.File("s")), PathState::kFree);
}

TEST(ListenerTest, RemovesItsPathButNotASuccessors) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("s");
  {
    absl::StatusOr<Listener> first =
        Listener::Listen(path, 0600, SocketType::kSeqpacket);
    ASSERT_TRUE(first.ok());
    ASSERT_EQ(::unlink(path.c_str()), 0);
    const absl::StatusOr<Listener> second =
        Listener::Listen(path, 0600, SocketType::kSeqpacket);
    ASSERT_TRUE(second.ok());
    { const Listener gone = *std::move(first); }
    EXPECT_EQ(*InspectSocketPath(path), PathState::kListening);
  }
  EXPECT_EQ(*InspectSocketPath(path), PathState::kFree);
}

TEST(ListenerTest, ReplacesAStaleSocket) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("s");
  LeaveStaleSocket(path);
  EXPECT_EQ(*InspectSocketPath(path), PathState::kStale);
  EXPECT_EQ(SeqpacketSocket::Connect(path, kLong).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Listener::Listen(path, 0600, SocketType::kSeqpacket).ok());
}

TEST(ListenerTest, LeavesALivingListenerAlone) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("s");
  const absl::StatusOr<Listener> first =
      Listener::Listen(path, 0600, SocketType::kSeqpacket);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(
      Listener::Listen(path, 0600, SocketType::kSeqpacket).status().code(),
      absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(SeqpacketSocket::Connect(path, kLong).ok());
}

TEST(ListenerTest, LeavesAListenerOfAnotherSocketTypeAlone) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("s");
  const base::UniqueFd stream(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const absl::StatusOr<sockaddr_un> address = SocketAddress(path);
  ASSERT_EQ(::bind(stream.get(), reinterpret_cast<const sockaddr*>(&*address),
                   sizeof(*address)),
            0);
  ASSERT_EQ(::listen(stream.get(), 1), 0);
  EXPECT_EQ(*InspectSocketPath(path), PathState::kListening);
  EXPECT_EQ(RemoveStaleSocket(path).code(), absl::StatusCode::kAlreadyExists);
}

TEST(ListenerTest, LeavesAFileThatIsNoSocketAlone) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("s");
  std::ofstream(path) << "precious";
  EXPECT_EQ(
      Listener::Listen(path, 0600, SocketType::kSeqpacket).status().code(),
      absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(ListenerTest, RefusesAPathThatIsTooLongAndSaysTheLimit) {
  const TemporaryDirectory directory;
  const std::string longest = directory.File(
      std::string(kMaxSocketPathBytes - directory.path().size() - 1, 'x'));
  EXPECT_TRUE(Listener::Listen(longest, 0600, SocketType::kSeqpacket).ok());
  const absl::Status refused =
      Listener::Listen(longest + "x", 0600, SocketType::kSeqpacket).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("at most 107 bytes"),
            absl::string_view::npos)
      << refused;
  EXPECT_EQ(SeqpacketSocket::Connect(longest + "x", kLong).status(), refused);
  EXPECT_EQ(CheckSocketPath("").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckSocketPath(std::string("a\0b", 3)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ListenerTest, SaysThatNobodyListensOnAnAbsentPath) {
  const TemporaryDirectory directory;
  EXPECT_EQ(
      SeqpacketSocket::Connect(directory.File("s"), kLong).status().code(),
      absl::StatusCode::kUnavailable);
  EXPECT_FALSE(Listener::Listen(directory.File("no/such/s"), 0600,
                                SocketType::kSeqpacket)
                   .ok());
}

// Listens, accepts nobody, and has no room for one more.
class FullListener {
 public:
  explicit FullListener(const std::string& path)
      : fd_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = SocketAddress(path).value();
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address),
                     sizeof(address)),
              0);
    EXPECT_EQ(::listen(fd_.get(), 1), 0);
    while (last_.ok()) {
      absl::StatusOr<SeqpacketSocket> client =
          SeqpacketSocket::Connect(path, absl::Milliseconds(20));
      last_ = client.status();
      if (client.ok()) waiting_.push_back(*std::move(client));
    }
  }
  void AcceptOne() const {
    const base::UniqueFd accepted(::accept(fd_.get(), nullptr, nullptr));
    EXPECT_TRUE(accepted.valid());
  }
  // Of the one there was no room for.
  [[nodiscard]] const absl::Status& last() const { return last_; }

 private:
  const base::UniqueFd fd_;
  std::vector<SeqpacketSocket> waiting_;
  absl::Status last_;
};

TEST(ListenerTest, AConnectionToAFullBacklogEndsAtItsDeadline) {
  const TemporaryDirectory directory;
  const FullListener full(directory.File("s"));
  EXPECT_EQ(full.last().code(), absl::StatusCode::kDeadlineExceeded);
  // It is not stale for that.
  EXPECT_EQ(InspectSocketPath(directory.File("s")).value(),
            PathState::kListening);
}

TEST(ListenerTest, AConnectionWaitsForRoomInAFullBacklogAlsoThroughSignals) {
  static std::atomic<int> signals = 0;
  struct sigaction count {};  // without SA_RESTART
  count.sa_handler = [](int) { ++signals; };
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &count, &before), 0);
  const TemporaryDirectory directory;
  const FullListener full(directory.File("s"));
  absl::Status connected;
  std::atomic<bool> done = false;
  std::thread client([&] {
    connected = SeqpacketSocket::Connect(directory.File("s"), kLong).status();
    done = true;
  });
  // So many that most of them meet it where it waits.
  while (signals < 1000 && !done)
    ::pthread_kill(client.native_handle(), SIGUSR1);
  EXPECT_FALSE(done);
  full.AcceptOne();
  client.join();
  EXPECT_TRUE(connected.ok()) << connected;
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST(ListenerTest, SaysWhenNoFdIsLeftAndKeepsTheConnectionWaiting) {
  const TemporaryDirectory directory;
  absl::StatusOr<Listener> listener =
      Listener::Listen(directory.File("s"), 0600, SocketType::kSeqpacket);
  ASSERT_TRUE(listener.ok());
  const absl::StatusOr<SeqpacketSocket> client =
      SeqpacketSocket::Connect(directory.File("s"), kLong);
  ASSERT_TRUE(client.ok());
  const size_t before = OpenFds();
  rlimit limits{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limits), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = limits.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status refused = listener->TryAccept().status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limits), 0);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(OpenFds(), before);
  EXPECT_TRUE(listener->TryAccept()->has_value());
}

}  // namespace
}  // namespace gmb::ipc
