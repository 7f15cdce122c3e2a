#include "bench/load/flatness.h"

#include <gtest/gtest.h>

#include <vector>

namespace gmb::bench {
namespace {

// Values of an hour: `grows` more in each minute.
std::vector<double> Hour(double start, double grows) {
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) values.push_back(start + grows * i);
  return values;
}

TEST(FlatnessTest, WhatGrowsIsNotFlat) {
  EXPECT_TRUE(FlatnessOf(Hour(100, 0), 0, 0).flat());
  EXPECT_FALSE(FlatnessOf(Hour(100, 0.1), 0, 0).flat());
  // 36 minutes lie between the middles of the first and the last third.
  EXPECT_TRUE(FlatnessOf(Hour(100, 0.2), 0, 8).flat());
  EXPECT_FALSE(FlatnessOf(Hour(100, 0.3), 0, 8).flat());
  EXPECT_TRUE(FlatnessOf(Hour(1000, 2), 0.1, 8).flat());
  EXPECT_FALSE(FlatnessOf(Hour(1000, 3.5), 0.1, 8).flat());
}

TEST(FlatnessTest, WhatTheStartTakesIsNoGrowth) {
  std::vector<double> values = Hour(100, 0);
  for (int i = 0; i < 6; ++i) values[i] = 0;
  EXPECT_TRUE(FlatnessOf(values, 0, 0).flat());
}

TEST(FlatnessTest, OneHighValueIsNoGrowth) {
  std::vector<double> values = Hour(100, 0);
  values[59] = 1000;
  EXPECT_TRUE(FlatnessOf(values, 0, 0).flat());
}

}  // namespace
}  // namespace gmb::bench
