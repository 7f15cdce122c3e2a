#include "client/preload/settings.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

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

TEST(PreloadSettingsTest, AVariableThatSaysNothingKnownIsNamedAndLeftOut) {
  std::map<std::string, std::string> environment = {
      {"GMB_RUN_WAIT", "2s"},       {"GMB_RUN_PARK_AFTER", "soon"},
      {"GMB_RUN_FALLBACK", "none"}, {"GMB_RUN_VMM", "native"},
      {"GMB_RUN_PARK", "of"},
  };
  const auto read = [&] {
    return ReadSettings([&](const char* name) -> std::string_view {
      const auto found = environment.find(name);
      if (found == environment.end()) return "";
      return found->second;
    });
  };
  const Settings settings = read();
  EXPECT_EQ(settings.wait_ms, 2000);
  EXPECT_EQ(settings.park_after_ms, 1000);
  EXPECT_FALSE(settings.native_without_broker);
  EXPECT_TRUE(settings.native_vmm);
  EXPECT_EQ(settings.park, Settings::Park::kAuto);
  EXPECT_EQ(
      settings.not_understood,
      (std::vector<std::string>{
          "GMB_RUN_PARK_AFTER=soon is not understood, and left out: "
          "write a time as 250ms, 2s or 1m, at most 1 h",
          "GMB_RUN_FALLBACK=none is not understood, and left out: write "
          "fail or native",
          "GMB_RUN_PARK=of is not understood, and left out: write auto or "
          "off or force"}));
  environment = {{"GMB_RUN_FALLBACK", "native"},
                 {"GMB_RUN_VMM", "lease"},
                 {"GMB_RUN_PARK", "force"},
                 {"GMB_RUN_WAIT", ""}};
  EXPECT_TRUE(read().not_understood.empty());
  EXPECT_TRUE(read().native_without_broker);
  EXPECT_EQ(read().park, Settings::Park::kForce);
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
