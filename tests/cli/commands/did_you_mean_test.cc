#include "client/cli/commands/did_you_mean.h"

#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

const std::vector<std::string>& Known() {
  static const auto* const known = new std::vector<std::string>{
      "status", "tenant", "session", "lease", "pool", "watch", "why"};
  return *known;
}

TEST(DidYouMeanTest, ASlipOfTheHandIsSeen) {
  EXPECT_EQ(DidYouMean("stauts", Known()), "status");
  EXPECT_EQ(DidYouMean("tenat", Known()), "tenant");
  EXPECT_EQ(DidYouMean("tenants", Known()), "tenant");
  EXPECT_EQ(DidYouMean("poll", Known()), "pool");
  EXPECT_EQ(DidYouMean("laese", Known()), "lease");
}

TEST(DidYouMeanTest, WhatIsTooFarOrTooLongIsNone) {
  EXPECT_EQ(DidYouMean("dance", Known()), "");
  EXPECT_EQ(DidYouMean("", Known()), "");
  EXPECT_EQ(DidYouMean("x", Known()), "");
  EXPECT_EQ(DidYouMean(std::string(100'000, 's'), Known()), "");
}

TEST(DidYouMeanTest, OfTwoThatAreAsNearNeitherIsSaid) {
  EXPECT_EQ(DidYouMean("--max", {"--man", "--mat"}), "");
  EXPECT_EQ(DidYouMean("--may", {"--man", "--mat", "--may"}), "--may");
}

}  // namespace
}  // namespace gmb::cli
