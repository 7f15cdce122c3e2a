#include "ipc/pidfd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <utility>

#include "ipc/listener.h"
#include "ipc/seqpacket.h"
#include "tests/ipc/temporary_directory.h"

namespace gmb::ipc {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

// A child that connects, says so, and lives until it is killed.
class PidfdTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<Listener> listener =
        Listener::Listen(directory_.File("s"), 0600, SocketType::kSeqpacket);
    ASSERT_TRUE(listener.ok());
    child_ = ::fork();
    if (child_ == 0) {
      absl::StatusOr<SeqpacketSocket> client =
          SeqpacketSocket::Connect(directory_.File("s"), kLong);
      if (client.ok() && client->Send("here", {}, false, kLong).ok()) ::pause();
      ::_exit(1);
    }
    pollfd entry{.fd = listener->fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&entry, 1, 30'000), 1);
    absl::StatusOr<std::optional<base::UniqueFd>> accepted =
        listener->TryAccept();
    ASSERT_TRUE(accepted.ok() && accepted->has_value());
    peer_ = SeqpacketSocket(*std::move(*accepted));
    ASSERT_TRUE(peer_.Receive(kLong).ok());
  }
  void TearDown() override { Kill(); }

  void Kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }

  const gmb::testing::TemporaryDirectory directory_;
  pid_t child_ = -1;
  SeqpacketSocket peer_{base::UniqueFd()};
};

TEST_F(PidfdTest, APeersPidfdTurnsReadableWhenItDies) {
  const absl::StatusOr<base::UniqueFd> pidfd =
      OpenPeerPidfd(peer_.fd(), child_);
  ASSERT_TRUE(pidfd.ok()) << pidfd.status();
  EXPECT_TRUE(IsAlive(*pidfd));
  EXPECT_NE(::fcntl(pidfd->get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(::kill(child_, SIGKILL), 0);
  pollfd entry{.fd = pidfd->get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&entry, 1, 30'000), 1);  // a zombie counts as dead
  EXPECT_FALSE(IsAlive(*pidfd));
}

TEST_F(PidfdTest, IsToldFromOtherFds) {
  const absl::StatusOr<base::UniqueFd> pidfd =
      OpenPeerPidfd(peer_.fd(), child_);
  ASSERT_TRUE(pidfd.ok()) << pidfd.status();
  EXPECT_TRUE(IsPidfd(pidfd->get()));
  const base::UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  const base::UniqueFd file(
      ::open(directory_.File("anon_inode:[pidfd]").c_str(),
             O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.valid());
  for (const int fd : {event.get(), file.get(), peer_.fd(), -1})
    EXPECT_FALSE(IsPidfd(fd)) << fd;
}

TEST_F(PidfdTest, ADeadPeerHasNoPidfd) {
  const pid_t child = child_;
  Kill();
  EXPECT_EQ(OpenPeerPidfd(peer_.fd(), child).status().code(),
            absl::StatusCode::kUnavailable);
}

// A child with that pid, which waits to be killed; -1: we may not choose a pid.
pid_t ChildWithPid(pid_t pid) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<uintptr_t>(&pid);
  arguments.set_tid_size = 1;
  const auto child =
      static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof(arguments)));
  if (child == 0) {
    while (true) ::pause();
  }
  return child;
}

// Between its greeting and its kill a process may die, and its pid be another's.
TEST_F(PidfdTest, WhoHasThePidAfterwardsIsNotKilled) {
  const absl::StatusOr<base::UniqueFd> pidfd =
      OpenPeerPidfd(peer_.fd(), child_);
  ASSERT_TRUE(pidfd.ok()) << pidfd.status();
  const pid_t pid = child_;
  Kill();
  child_ = ChildWithPid(pid);
  if (child_ < 0) GTEST_SKIP() << "choosing a pid takes CAP_CHECKPOINT_RESTORE";
  ASSERT_EQ(child_, pid);
  EXPECT_FALSE(IsAlive(*pidfd));
  EXPECT_EQ(ipc::Kill(*pidfd).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(OpenPeerPidfd(peer_.fd(), pid).status().code(),
            absl::StatusCode::kUnavailable);
  // No signal waits for it: the next one is the first.
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0);
  ASSERT_EQ(::kill(pid, SIGTERM), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  child_ = -1;
}

}  // namespace
}  // namespace gmb::ipc
