#include "broker/fd_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>

#include "ipc/open_files.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FdLimit, IsRaisedToTheHardLimit) {
  // In a child, so that the test's own limit stays.
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit limit{.rlim_cur = 64, .rlim_max = 128};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(2);
    const auto raised = ipc::RaiseFdLimit();
    ::_exit(raised.ok() && *raised == 128 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(FdLimit, WishesThatFitAreLeftAlone) {
  const FdPlan plan = FitIntoFdLimit(
      {.max_handles = 32'768, .max_sessions = 1'024, .kept_ready = 140},
      65'536);
  EXPECT_EQ(plan.max_handles, 32'768u);
  EXPECT_EQ(plan.max_sessions, 1'024u);
  EXPECT_THAT(plan.warning, IsEmpty());
}

TEST(FdLimit, TheExactNeedFitsAndOneLessDoesNot) {
  const FdWishes wishes{
      .max_handles = 1'000, .max_sessions = 100, .kept_ready = 10};
  const uint64_t need = 768 + 10 + 400 + 1'000;
  EXPECT_THAT(FitIntoFdLimit(wishes, need).warning, IsEmpty());
  const FdPlan plan = FitIntoFdLimit(wishes, need - 1);
  EXPECT_EQ(plan.max_sessions, 100u);
  EXPECT_EQ(plan.max_handles, 999u);
  EXPECT_THAT(plan.warning, HasSubstr("2178"));
  EXPECT_THAT(plan.warning, HasSubstr("LimitNOFILE"));
  EXPECT_THAT(plan.warning, HasSubstr("999 of 1000 handles and 100 of 100 "));
}

TEST(FdLimit, TheSocketsOfTenantsTakeTheirPart) {
  const FdWishes wishes{.max_handles = 8'000,
                        .max_sessions = 1'010,
                        .tenants = 1'000,
                        .fds_per_handle = 2};
  const FdPlan plan = FitIntoFdLimit(wishes, 20'000);
  EXPECT_EQ(plan.max_sessions, 1'010u);
  EXPECT_EQ(plan.max_handles, (20'000u - 768u - 2'000u - 4u * 1'010u) / 2);
}

TEST(FdLimit, ALowLimitIsSharedBetweenSessionsAndHandles) {
  const FdPlan plan =
      FitIntoFdLimit({.max_handles = 32'768, .max_sessions = 1'024}, 1'024);
  EXPECT_EQ(plan.max_sessions, 32u);
  EXPECT_EQ(plan.max_handles, 1'024u - 768u - 4 * 32u);
}

TEST(FdLimit, HopelessAndAbsurdNumbersStillGiveAPlan) {
  EXPECT_EQ(
      FitIntoFdLimit({.max_handles = 10, .max_sessions = 10}, 3).max_handles,
      1u);
  EXPECT_EQ(
      FitIntoFdLimit({.max_handles = 10, .max_sessions = 10}, 3).max_sessions,
      1u);
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
  const FdPlan plan = FitIntoFdLimit({kAll, kAll, kAll}, kAll);
  EXPECT_GE(plan.max_handles, 1u);
  EXPECT_GE(plan.max_sessions, 1u);
  EXPECT_THAT(FitIntoFdLimit({1000, 1000, 0}, kAll).warning, IsEmpty());
}

}  // namespace
}  // namespace gmb::broker
