#include "broker/core/stall_watch.h"

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

TEST(StallWatchTest, AGapThatNoBrokerHasIsAStallOnce) {
  StallWatch watch;
  StallWatch::Time now{std::chrono::hours(100)};
  watch.SetDue(now);
  EXPECT_FALSE(watch.WasHeldUp(now)) << "the first turn of all";
  EXPECT_FALSE(watch.WasHeldUp(now += std::chrono::milliseconds(1100)));
  EXPECT_FALSE(watch.WasHeldUp(now += StallWatch::kLongestGap));
  EXPECT_TRUE(watch.WasHeldUp(now += std::chrono::seconds(3)));
  EXPECT_FALSE(watch.WasHeldUp(now)) << "told once";
}

// As where no device is left, and nothing but an answer is due.
TEST(StallWatchTest, AGapInWhichNothingWasDueIsNone) {
  StallWatch watch;
  StallWatch::Time now{std::chrono::hours(100)};
  EXPECT_FALSE(watch.WasHeldUp(now));
  watch.SetDue(now + std::chrono::seconds(10));
  EXPECT_FALSE(watch.WasHeldUp(now += std::chrono::seconds(10)));
  watch.SetDue(now + std::chrono::seconds(10));
  EXPECT_FALSE(watch.WasHeldUp(now += std::chrono::seconds(5)));
  watch.SetDueEarlier(now + std::chrono::seconds(1));
  watch.SetDueEarlier(now + std::chrono::seconds(4));
  EXPECT_TRUE(watch.WasHeldUp(now + std::chrono::seconds(3)));
}

}  // namespace
}  // namespace gmb::broker
