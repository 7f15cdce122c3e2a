#include "client/preload/settings.h"

#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

TEST(PreloadSettingsTest, DurationsAreMillisecondsSecondsOrMinutes) {
  EXPECT_EQ(ParseMilliseconds("0ms"), 0);
  EXPECT_EQ(ParseMilliseconds("250ms"), 250);
  EXPECT_EQ(ParseMilliseconds("2s"), 2000);
  EXPECT_EQ(ParseMilliseconds("60m"), 3'600'000);
}

TEST(PreloadSettingsTest, AnythingElseIsNone) {
  for (const char* const text :
       {"", "1", "s", "-1s", "1 s", "1h", "1.5s", "61m", "1sx",
        "99999999999999999999s", "9223372036854775807m"}) {
    EXPECT_EQ(ParseMilliseconds(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace gmb::preload
