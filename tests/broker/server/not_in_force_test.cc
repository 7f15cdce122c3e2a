#include "broker/server/not_in_force.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Lines(const NotInForce& values) {
  v1::GetStatusResponse status;
  values.AddTo(&status);
  return {status.not_in_force().begin(), status.not_in_force().end()};
}

TEST(NotInForceTest, ValuesThatTheStartLeftOutAreSaidUntilTheyAreSettled) {
  NotInForce values(
      DroppedValues{{"a", "a is not."}, {"pool:GPU-1", "its size is not."}});
  EXPECT_EQ(values.size(), 2U);
  EXPECT_THAT(Lines(values), ElementsAre("a is not.", "its size is not."));
  values.Settle("GPU-1");
  EXPECT_EQ(values.size(), 2U);
  values.Settle("pool:GPU-1");
  EXPECT_EQ(values.size(), 1U);
  EXPECT_THAT(Lines(values), ElementsAre("a is not."));
  values.Settle("a");
  EXPECT_EQ(values.size(), 0U);
  EXPECT_THAT(Lines(values), IsEmpty());
}

TEST(NotInForceTest, ASubjectHasOneLineWhichIsTheLast) {
  NotInForce values(DroppedValues{{"a", "a is not."}});
  values.Drop("b", "b is not.");
  values.Drop("a", "a is not, again.");
  EXPECT_EQ(values.size(), 2U);
  EXPECT_THAT(Lines(values), ElementsAre("a is not, again.", "b is not."));
}

TEST(NotInForceTest, AHundredAreSaidAndAllAreCounted) {
  DroppedValues dropped;
  for (int i = 100; i < 250; ++i)
    dropped["t" + std::to_string(i)] = "t" + std::to_string(i);
  NotInForce values(dropped);
  EXPECT_EQ(values.size(), 150U);
  ASSERT_EQ(Lines(values).size(), 100U);
  EXPECT_EQ(Lines(values).back(), "t199");
  values.Settle("t100");
  EXPECT_EQ(values.size(), 149U);
  EXPECT_EQ(Lines(values).back(), "t200");
}

}  // namespace
}  // namespace gmb::broker
