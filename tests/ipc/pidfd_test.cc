#include "ipc/pidfd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
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

}  // namespace
}  // namespace gmb::ipc
