#include "client/preload/wait_left.h"

#include <chrono>

#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

using std::chrono::milliseconds;

TEST(WaitLeftTest, RequestsOfOneCallWaitNoLongerThanOne) {
  const WaitLeft::Clock::time_point start;
  const WaitLeft left(1000, start);
  EXPECT_EQ(left.MillisecondsAt(start), 1000);
  EXPECT_EQ(left.MillisecondsAt(start + milliseconds(400)), 600);
  EXPECT_EQ(left.MillisecondsAt(start + milliseconds(1000)), 0);
  EXPECT_EQ(left.MillisecondsAt(start + milliseconds(5000)), 0);
}

TEST(WaitLeftTest, AWaitWithoutAnEndHasNone) {
  const WaitLeft::Clock::time_point start;
  EXPECT_EQ(WaitLeft(-1, start).MillisecondsAt(start + milliseconds(5)), -1);
}

}  // namespace
}  // namespace gmb::preload
