#include "client/preload/steady_budget.h"

#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

using std::chrono::seconds;

constexpr SteadyBudget::TimePoint kStart{seconds(1000)};

uint64_t FreeAt(SteadyBudget* steady, Budget budget, seconds after) {
  return steady->At(budget, kStart + after).free_bytes;
}

TEST(SteadyBudgetTest, OthersMoveWhatIsFreeOnlyAfterAMinute) {
  SteadyBudget steady;
  const Budget first{.free_bytes = 50, .total_bytes = 100, .leased_bytes = 10};
  Budget now = first;
  EXPECT_EQ(FreeAt(&steady, first, seconds(0)), 50u);
  now.free_bytes = 90;  // given back by others
  EXPECT_EQ(FreeAt(&steady, now, seconds(1)), 50u);
  now.free_bytes = 5;  // taken by others
  EXPECT_EQ(FreeAt(&steady, now, seconds(59)), 50u);
  EXPECT_EQ(FreeAt(&steady, now, seconds(60)), 5u);
  EXPECT_EQ(FreeAt(&steady, first, seconds(61)), 50u);
}

TEST(SteadyBudgetTest, ItsOwnLeasesMoveItAtOnce) {
  SteadyBudget steady;
  (void)steady.At({.free_bytes = 50, .total_bytes = 100, .leased_bytes = 10},
                  kStart);
  EXPECT_EQ(FreeAt(&steady,
                   {.free_bytes = 90, .total_bytes = 100, .leased_bytes = 40},
                   seconds(1)),
            20u);
  EXPECT_EQ(
      FreeAt(&steady, {.free_bytes = 90, .total_bytes = 100, .leased_bytes = 0},
             seconds(2)),
      60u);
  EXPECT_EQ(
      FreeAt(&steady, {.free_bytes = 0, .total_bytes = 100, .leased_bytes = 80},
             seconds(3)),
      0u)
      << "more than was obtainable at first";
}

TEST(SteadyBudgetTest, AnotherLimitBeginsAnew) {
  SteadyBudget steady;
  (void)steady.At({.free_bytes = 50, .total_bytes = 100, .leased_bytes = 10},
                  kStart);
  EXPECT_EQ(FreeAt(&steady,
                   {.free_bytes = 70, .total_bytes = 120, .leased_bytes = 10},
                   seconds(1)),
            70u);
  EXPECT_EQ(FreeAt(&steady,
                   {.free_bytes = 20, .total_bytes = 120, .leased_bytes = 10},
                   seconds(2)),
            70u);
}

TEST(SteadyBudgetTest, NoMoreIsFreeThanTheTenantMayHave) {
  SteadyBudget steady;
  EXPECT_EQ(FreeAt(&steady,
                   {.free_bytes = 100, .total_bytes = 100, .leased_bytes = 10},
                   seconds(0)),
            90u);
}

}  // namespace
}  // namespace gmb::preload
