#include "client/session/busy_wait.h"

#include <chrono>

#include "gtest/gtest.h"

namespace gmb::internal {
namespace {

using std::chrono::microseconds;

TEST(BusyWaitTest, TheFirstCallPollsForTheLongestTime) {
  EXPECT_EQ(BusyWait().Length(), BusyWait::kMost);
}

TEST(BusyWaitTest, ACallPollsForTwiceTheTimeOfTheLastAnswer) {
  BusyWait wait;
  wait.Answered(microseconds(90));
  EXPECT_EQ(wait.Length(), microseconds(180));
  wait.Answered(microseconds(300));
  EXPECT_EQ(wait.Length(), BusyWait::kMost);
}

TEST(BusyWaitTest, NobodyPollsWhileAnswersComeLate) {
  BusyWait wait;
  wait.Answered(BusyWait::kMost + microseconds(1));
  EXPECT_EQ(wait.Length(), BusyWait::Duration::zero());
  wait.Answered(microseconds(50));
  EXPECT_EQ(wait.Length(), microseconds(100));
}

}  // namespace
}  // namespace gmb::internal
