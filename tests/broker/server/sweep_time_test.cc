#include "broker/server/sweep_time.h"

#include <gtest/gtest.h>

namespace gmb::broker {
namespace {

using Clock = SweepTime::Clock;

TEST(SweepTimeTest, NoneIsDueUntilOneIsSet) {
  SweepTime sweep(std::chrono::seconds(1));
  EXPECT_EQ(sweep.next(), std::nullopt);
  EXPECT_FALSE(sweep.IsDue(Clock::time_point::max()));
}

TEST(SweepTimeTest, SoonIsOneIntervalAway) {
  SweepTime sweep(std::chrono::hours(1));
  const auto before = Clock::now();
  sweep.SetSoon();
  const auto next = sweep.next();
  ASSERT_TRUE(next.has_value());
  EXPECT_GE(*next, before + std::chrono::hours(1));
  EXPECT_LE(*next, Clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(sweep.IsDue(*next - Clock::duration(1)));
  EXPECT_TRUE(sweep.IsDue(*next));
}

// Peers that go on causing sweeps would put them off for ever.
TEST(SweepTimeTest, ATimeThatIsSetStays) {
  SweepTime sweep(std::chrono::hours(1));
  sweep.SetSoon();
  const auto first = sweep.next();
  sweep.SetSoon();
  EXPECT_EQ(sweep.next(), first);
  sweep.SetNow();
  EXPECT_EQ(sweep.next(), first);
}

TEST(SweepTimeTest, NowIsDueAtOnce) {
  SweepTime sweep(std::chrono::hours(1));
  sweep.SetNow();
  EXPECT_TRUE(sweep.IsDue(Clock::now()));
}

TEST(SweepTimeTest, AfterASweepAnotherFollowsWhereOneIsWaitedFor) {
  SweepTime sweep(std::chrono::hours(1));
  sweep.SetNow();
  const auto before = Clock::now();
  sweep.Done(/*again=*/true);
  ASSERT_TRUE(sweep.next().has_value());
  EXPECT_GE(*sweep.next(), before + std::chrono::hours(1));
  sweep.Done(/*again=*/false);
  EXPECT_EQ(sweep.next(), std::nullopt);
}

}  // namespace
}  // namespace gmb::broker
