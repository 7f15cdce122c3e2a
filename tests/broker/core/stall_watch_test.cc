#include "broker/core/stall_watch.h"

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

TEST(StallWatchTest, AGapThatNoBrokerHasIsAStallOnce) {
  StallWatch watch;
  StallWatch::Time now{std::chrono::hours(100)};
  EXPECT_FALSE(watch.WasHeldUp(now)) << "the first turn of all";
  EXPECT_FALSE(watch.WasHeldUp(now += std::chrono::milliseconds(1100)));
  EXPECT_FALSE(watch.WasHeldUp(now += StallWatch::kLongestGap));
  EXPECT_TRUE(watch.WasHeldUp(now += std::chrono::seconds(3)));
  EXPECT_FALSE(watch.WasHeldUp(now)) << "told once";
}

}  // namespace
}  // namespace gmb::broker
