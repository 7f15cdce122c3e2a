// Counters that only rise become rows of days.
#include "broker/usage/usage_days.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kDay = 20'000;
const absl::Time kNoon = absl::UnixEpoch() + absl::Hours(kDay * 24 + 12);

metrics::Counts Of(const std::string& tenant,
                   const metrics::DeviceCounts& device) {
  metrics::Counts counts;
  counts.tenants[tenant].devices["host-0"] = device;
  return counts;
}

metrics::DeviceCounts Granted(uint64_t granted, double byte_seconds) {
  metrics::DeviceCounts counts;
  counts.granted = granted;
  counts.byte_seconds = byte_seconds;
  return counts;
}

TEST(DayTest, IsOfUtc) {
  EXPECT_EQ(DayOf(kNoon), kDay);
  EXPECT_EQ(DayOf(NextDay(kNoon)), kDay + 1);
  EXPECT_EQ(DayOf(NextDay(kNoon) - absl::Nanoseconds(1)), kDay);
  EXPECT_EQ(NextDay(NextDay(kNoon)) - NextDay(kNoon), absl::Hours(24));
  EXPECT_EQ(DayText(kDay), "2024-10-04");
  EXPECT_EQ(DayOf(absl::UnixEpoch() - absl::Seconds(1)), -1);
}

TEST(UsageDaysTest, WhatHasRisenIsNew) {
  UsageDays days;
  metrics::DeviceCounts counts = Granted(2, 100);
  counts.refused = {{"TENANT_LIMIT", 3}, {"other", 1}};
  counts.evictions.done = 1;
  counts.evictions.bytes = 64;
  counts.restores.done = 1;
  counts.restores.bytes = 32;
  counts.peak_bytes = 64;
  const UsageKey today{kDay, "a", "host-0"};
  EXPECT_THAT(days.Take(Of("a", counts), kNoon),
              ElementsAre(Pair(today, Usage{.peak_bytes = 64,
                                            .byte_seconds = 100,
                                            .granted = 2,
                                            .refused = 4,
                                            .evictions = 1,
                                            .evicted_bytes = 64,
                                            .restores = 1,
                                            .restored_bytes = 32})));
  counts.peak_bytes = 16;  // since then
  counts.byte_seconds = 130;
  counts.granted = 3;
  EXPECT_THAT(days.Take(Of("a", counts), NextDay(kNoon)),
              ElementsAre(Pair(
                  UsageKey{kDay + 1, "a", "host-0"},
                  Usage{.peak_bytes = 16, .byte_seconds = 30, .granted = 1})));
  counts.peak_bytes = 0;
  EXPECT_THAT(days.Take(Of("a", counts), kNoon), IsEmpty());
}

TEST(UsageDaysTest, ATenantThatIsMadeAnewBeginsAnew) {
  UsageDays days;
  const UsageKey today{kDay, "a", "host-0"};
  (void)days.Take(Of("a", Granted(5, 50)), kNoon);
  metrics::Counts anew = Of("a", Granted(2, 20));
  anew.ended[{"a", "host-0"}] = Granted(6, 55);
  EXPECT_THAT(
      days.Take(anew, kNoon),
      ElementsAre(Pair(today, Usage{.byte_seconds = 25, .granted = 3})));
  // Deleted, seen, and made anew.
  EXPECT_THAT(days.Take({}, kNoon), IsEmpty());
  EXPECT_THAT(days.Take(Of("a", Granted(2, 0)), kNoon),
              ElementsAre(Pair(today, Usage{.granted = 2})));
}

TEST(UsageTest, AddsUpButForThePeak) {
  Usage usage{.peak_bytes = 5, .byte_seconds = 1, .granted = 1};
  usage.Add({.peak_bytes = 3,
             .byte_seconds = 2,
             .granted = 1,
             .refused = 1,
             .evictions = 1,
             .evicted_bytes = 1,
             .restores = 1,
             .restored_bytes = 1});
  EXPECT_EQ(usage, (Usage{.peak_bytes = 5,
                          .byte_seconds = 3,
                          .granted = 2,
                          .refused = 1,
                          .evictions = 1,
                          .evicted_bytes = 1,
                          .restores = 1,
                          .restored_bytes = 1}));
}

}  // namespace
}  // namespace gmb::broker
