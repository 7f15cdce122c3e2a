#include "client/heap/growth_pace.h"

#include <gtest/gtest.h>

namespace gmb::internal {
namespace {

using std::chrono::seconds;

constexpr GrowthPace::TimePoint kBegin{};

TEST(GrowthPaceTest, OneMoreIsAskedForFromTheSecondTimeInARow) {
  GrowthPace pace(seconds(1));
  EXPECT_EQ(pace.Next(kBegin), 0U);
  EXPECT_EQ(pace.Next(kBegin + seconds(1)), 0U);  // a pause
  EXPECT_EQ(pace.Next(kBegin + std::chrono::milliseconds(1500)), 1U);
}

TEST(GrowthPaceTest, NothingIsAskedForAheadSoonAfterARefusal) {
  GrowthPace pace(seconds(2));
  EXPECT_EQ(pace.Next(kBegin), 0U);
  pace.Refused(kBegin);
  for (int i = 1; i < 8; ++i) EXPECT_EQ(pace.Next(kBegin + seconds(i)), 0U);
  EXPECT_EQ(pace.Next(kBegin + seconds(8)), 1U);
}

TEST(GrowthPaceTest, WithoutARunNothingIsAskedForAhead) {
  GrowthPace pace(seconds(0));
  EXPECT_EQ(pace.Next(kBegin), 0U);
  EXPECT_EQ(pace.Next(kBegin), 0U);
}

}  // namespace
}  // namespace gmb::internal
