#include "tests/quota/forecast.h"

#include <gtest/gtest.h>

#include "quota/backing.h"

namespace gmb::quota {
namespace {

constexpr Nanoseconds kOneSecond = std::chrono::seconds(1);

Instant At(int64_t count) { return Instant{} + count * kOneSecond; }

TEST(DemandForecastTest, AConstantNeedIsForecastAsItself) {
  DemandForecast forecast({.interval = kOneSecond});
  forecast.Observe(100, At(0));
  EXPECT_EQ(forecast.PeakBytes(At(0)), 100u);
  EXPECT_EQ(forecast.PeakBytes(At(50)), 100u);
  EXPECT_EQ(forecast.PeakBytes(At(50), 20 * kOneSecond), 100u);
  EXPECT_EQ(forecast.intervals(), 50u);
}

TEST(DemandForecastTest, ATrendIsCarriedOn) {
  DemandForecast forecast({.interval = kOneSecond});
  for (int64_t i = 0; i <= 60; ++i) {
    forecast.Observe(static_cast<uint64_t>(1000 + 10 * i), At(i));
  }
  EXPECT_NEAR(static_cast<double>(forecast.PeakBytes(At(60))), 1600, 15);
  EXPECT_NEAR(static_cast<double>(forecast.PeakBytes(At(60), 10 * kOneSecond)),
              1700, 25);
}

TEST(DemandForecastTest, ThePeakOfAnIntervalCountsNotItsEnd) {
  DemandForecast forecast({.interval = kOneSecond, .level_gain = 1});
  forecast.Observe(0, At(0));
  for (int64_t i = 0; i < 20; ++i) {
    forecast.Observe(500, At(i) + kOneSecond / 4);
    forecast.Observe(0, At(i) + kOneSecond / 2);
  }
  EXPECT_GT(forecast.PeakBytes(At(20)), 400u);
}

TEST(DemandForecastTest, AFallingTrendEndsAtZero) {
  DemandForecast forecast({.interval = kOneSecond});
  for (int64_t i = 0; i < 20; ++i) {
    forecast.Observe(static_cast<uint64_t>(2000 - 100 * i), At(i));
  }
  EXPECT_EQ(forecast.PeakBytes(At(20), 1000 * kOneSecond), 0u);
}

TEST(DemandForecastTest, ALongSilenceIsWalkedThroughQuickly) {
  DemandForecast forecast({.interval = Nanoseconds(1)});
  forecast.Observe(7, At(0));
  forecast.Observe(0, At(1));
  EXPECT_EQ(forecast.PeakBytes(At(1'000'000'000)), 0u);
}

TEST(DemandForecastTest, TimeThatRunsBackwardsAndHugeFiguresAreHarmless) {
  DemandForecast forecast(
      {.interval = Nanoseconds(0), .level_gain = 9, .trend_gain = -1});
  forecast.Observe(~uint64_t{0}, At(5));
  forecast.Observe(~uint64_t{0}, At(3));
  EXPECT_EQ(forecast.PeakBytes(Instant::Max()), kMaxPoolBytes);
}

class BackingTest : public ::testing::Test {
 protected:
  LeaseRow& Add(uint64_t tenant, uint64_t bytes, int64_t idle_since) {
    leases_.push_back({.lease = LeaseId{leases_.size() + 1},
                       .tenant = TenantId{tenant},
                       .bytes = bytes,
                       .gate = Gate::kParked,
                       .host_room = true,
                       .idle_since = At(idle_since)});
    return leases_.back();
  }
  uint64_t Next(bool waits = false, uint64_t wanted = ~uint64_t{0}) {
    const auto step = NextToBack({leases_, tenants_, 0}, At(100), waits, 1000,
                                 options_, wanted);
    bytes_ = step ? step->bytes : 0;
    return step ? step->lease.value : 0;
  }

  std::vector<LeaseRow> leases_;
  std::vector<TenantRow> tenants_ = {
      {.tenant = TenantId{1}, .resident_bytes = 50},
      {.tenant = TenantId{2}, .resident_bytes = 90},
      {.tenant = TenantId{3}, .guarantee_bytes = 99, .resident_bytes = 99}};
  BackingOptions options_;
  uint64_t bytes_ = 0;
};

TEST_F(BackingTest, TheLikeliestVictimIsBackedFirst) {
  Add(3, 10, 1);
  Add(1, 10, 2);
  Add(2, 10, 50);
  Add(2, 10, 40);
  EXPECT_EQ(Next(), 4u);
  leases_[3].backed_bytes = 10;
  EXPECT_EQ(Next(), 3u);
  leases_[2].backed_bytes = 4;
  EXPECT_EQ(Next(), 3u);
  EXPECT_EQ(bytes_, 6u);
}

TEST_F(BackingTest, NeverBesideAWaitingRequestNorMoreThanIsWanted) {
  Add(1, 10, 2).backed_bytes = 10;
  Add(1, 10, 2);
  EXPECT_EQ(Next(true), 0u);
  EXPECT_EQ(Next(false, 10), 0u);
  EXPECT_EQ(Next(false, 13), 2u);
  EXPECT_EQ(bytes_, 3u);
}

TEST_F(BackingTest, OnlyWhatIsParkedAndWorthACopy) {
  Add(1, 10, 2).gate = Gate::kActive;
  Add(1, 10, 99);
  Add(1, 10, 2).contents = Contents::kDiscard;
  Add(1, 10, 2).busy = true;
  Add(1, 10, 2).evicted = true;
  Add(1, 10, 2).host_room = false;
  Add(1, 10, 2).back_off_until = At(101);
  EXPECT_EQ(Next(), 0u);
}

TEST(BackingBudgetTest, NoMoreThanTheRateOverAnyTime) {
  const BackingOptions options{.bytes_per_second = 100, .burst_bytes = 50};
  BackingBudget budget(options);
  uint64_t spent = 0;
  for (int64_t ms = 0; ms <= 10'000; ms += 7) {
    const Instant now = Instant{} + ms * (kOneSecond / 1000);
    const uint64_t bytes = budget.AvailableBytes(now);
    budget.Spend(bytes, now);
    spent += bytes;
    ASSERT_LE(spent, 50 + static_cast<uint64_t>(ms) / 10 + 1);
  }
  EXPECT_GT(spent, 950u);
  EXPECT_EQ(budget.AvailableAt(51, At(20)), Instant::Max());
  EXPECT_EQ(budget.AvailableAt(50, At(20)), At(20));
  BackingBudget none({.bytes_per_second = 0});
  EXPECT_EQ(none.AvailableBytes(At(1)), 0u);
}

}  // namespace
}  // namespace gmb::quota
