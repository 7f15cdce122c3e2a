// Threads that wait at a session's sockets, polling first or not.
#include "client/session/session_wait.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "base/unique_fd.h"
#include "gtest/gtest.h"
#include "ipc/wakeup.h"

namespace gmb::internal {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::hours;
using std::chrono::milliseconds;

// The parameter: whether the thread polls for as long as it waits.
class SessionWaitTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    absl::StatusOr<SessionWait> made = SessionWait::Create();
    ASSERT_TRUE(made.ok()) << made.status();
    wait.emplace(*std::move(made));
    absl::StatusOr<ipc::Wakeup> own = ipc::Wakeup::Create();
    ASSERT_TRUE(own.ok()) << own.status();
    wakeup.emplace(*std::move(own));
    std::array<int, 2> fds{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds.data()), 0);
    ours = base::UniqueFd(fds[0]);
    theirs = base::UniqueFd(fds[1]);
    ASSERT_TRUE(wait->AddSocket(ours.get()).ok());
  }
  bool WaitUntil(Clock::time_point until) {
    const Clock::time_point polls_until =
        GetParam() ? until : Clock::time_point::min();
    return wait->WaitAtSockets(&*wakeup, polls_until, until);
  }
  void Say() const { ASSERT_EQ(write(theirs.get(), "x", 1), 1); }

  std::optional<SessionWait> wait;
  std::optional<ipc::Wakeup> wakeup;
  base::UniqueFd ours;
  base::UniqueFd theirs;
};

TEST_P(SessionWaitTest, ASocketEndsIt) {
  Say();
  EXPECT_TRUE(WaitUntil(Clock::now() + hours(1)));
  EXPECT_TRUE(WaitUntil(Clock::now() + hours(1))) << "it was not read";
}

TEST_P(SessionWaitTest, AWordOfAnotherThreadEndsIt) {
  std::thread other([this] { wakeup->Notify(); });
  EXPECT_FALSE(WaitUntil(Clock::now() + hours(1)));
  other.join();
  Say();
  EXPECT_TRUE(WaitUntil(Clock::now() + hours(1))) << "the word was cleared";
}

TEST_P(SessionWaitTest, ASocketThatComesWithAWordIsNotOverlooked) {
  wakeup->Notify();
  Say();
  EXPECT_TRUE(WaitUntil(Clock::now() + hours(1)));
}

TEST_P(SessionWaitTest, ItsTimeEndsIt) {
  const Clock::time_point until = Clock::now() + milliseconds(5);
  EXPECT_FALSE(WaitUntil(until));
  EXPECT_GE(Clock::now(), until);
}

TEST_P(SessionWaitTest, AHangUpEndsIt) {
  theirs.reset();
  EXPECT_TRUE(WaitUntil(Clock::now() + hours(1)));
}

INSTANTIATE_TEST_SUITE_P(Polling, SessionWaitTest, testing::Bool());

}  // namespace
}  // namespace gmb::internal
