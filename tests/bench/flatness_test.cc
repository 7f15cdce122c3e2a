#include "bench/load/flatness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gmb::bench {
namespace {

// Values of an hour: `grows` more in each minute.
std::vector<double> Hour(double start, double grows) {
  std::vector<double> values(60, start);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] += grows * static_cast<double>(i);
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
  std::fill_n(values.begin(), 6, 0);
  EXPECT_TRUE(FlatnessOf(values, 0, 0).flat());
}

TEST(FlatnessTest, OneHighValueIsNoGrowth) {
  std::vector<double> values = Hour(100, 0);
  values[59] = 1000;
  EXPECT_TRUE(FlatnessOf(values, 0, 0).flat());
}

}  // namespace
}  // namespace gmb::bench
