#include "client/preload/settings.h"

#include <string>

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

TEST(PreloadSettingsTest, AGroupsNameIsAsTheBrokerTakesIt) {
  const auto knows = [](const std::string& name) {
    Settings settings;
    settings.group = name;
    return settings.KnowsGroup();
  };
  EXPECT_TRUE(knows(""));
  EXPECT_TRUE(knows("a b~" + std::string(59, 'x')));
  EXPECT_FALSE(knows(std::string(64, 'x')));
  EXPECT_FALSE(knows("a\nb"));
  EXPECT_FALSE(knows("\x7f"));
}

}  // namespace
}  // namespace gmb::preload
