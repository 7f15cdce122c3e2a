#include "client/preload/kept_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gmb::preload {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

constexpr uint64_t kOneMiB = uint64_t{1} << 20;
constexpr KeptLeases::TimePoint kBegin{};

LeaseRange Lease(uint64_t start, uint64_t bytes) {
  return {.handle = nullptr, .start = start, .bytes = bytes};
}
auto At(uint64_t start) { return Field(&LeaseRange::start, start); }

TEST(KeptLeasesTest, OnlyALeaseOfTheSameSizeAndDeviceServesAgain) {
  KeptLeases kept;
  kept.Add(0, Lease(100, 4 * kOneMiB), kBegin);
  kept.Add(1, Lease(200, 8 * kOneMiB), kBegin);
  EXPECT_FALSE(kept.Take(0, 2 * kOneMiB).has_value());
  EXPECT_FALSE(kept.Take(0, 8 * kOneMiB).has_value());
  EXPECT_EQ(kept.HeldBytes(0), 4 * kOneMiB);
  const std::optional<LeaseRange> taken = kept.Take(0, 4 * kOneMiB);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->start, 100U);
  EXPECT_FALSE(kept.Take(0, 4 * kOneMiB).has_value());
  EXPECT_EQ(kept.HeldBytes(0), 0U);
  EXPECT_EQ(kept.HeldBytes(1), 8 * kOneMiB);
}

TEST(KeptLeasesTest, TheLastFreedServesFirstAndTheFirstFreedGoesFirst) {
  KeptLeases kept;
  for (const uint64_t start : {100, 200, 300})
    kept.Add(0, Lease(start, 2 * kOneMiB), kBegin);
  EXPECT_EQ(kept.Take(0, 2 * kOneMiB)->start, 300U);
  EXPECT_THAT(kept.TakeFor(0, 2 * kOneMiB + 1), ElementsAre(At(100), At(200)));
  EXPECT_TRUE(kept.empty());
}

TEST(KeptLeasesTest, AsMuchAsIsNeededOfOneDeviceGoes) {
  KeptLeases kept;
  kept.Add(1, Lease(50, 2 * kOneMiB), kBegin);
  kept.Add(0, Lease(100, 2 * kOneMiB), kBegin);
  kept.Add(0, Lease(200, 4 * kOneMiB), kBegin);
  EXPECT_THAT(kept.TakeFor(0, 1), ElementsAre(At(100)));
  EXPECT_THAT(kept.TakeFor(0, 100 * kOneMiB), ElementsAre(At(200)));
  EXPECT_THAT(kept.TakeFor(0, kOneMiB), IsEmpty());
  EXPECT_THAT(kept.TakeAll(), ElementsAre(At(50)));
}

TEST(KeptLeasesTest, ALeaseIsOldAfterItsTime) {
  KeptLeases kept;
  kept.Add(0, Lease(100, 2 * kOneMiB), kBegin);
  kept.Add(0, Lease(200, 2 * kOneMiB), kBegin + std::chrono::milliseconds(1));
  const auto due = kBegin + KeptLeases::kKeptFor;
  EXPECT_THAT(kept.TakeOld(due - std::chrono::nanoseconds(1)), IsEmpty());
  EXPECT_THAT(kept.TakeOld(due), ElementsAre(At(100)));
  EXPECT_THAT(kept.TakeOld(due + std::chrono::seconds(1)),
              ElementsAre(At(200)));
}

TEST(KeptLeasesTest, WhatItsHolderMapsServesHandlesAloneTheFirstToComeFirst) {
  KeptLeases kept;
  kept.Add(0, {.bytes = 4 * kOneMiB, .name = 1}, kBegin);
  kept.Add(0, Lease(100, 4 * kOneMiB), kBegin);
  kept.Add(0, {.bytes = 4 * kOneMiB, .asked = 2}, kBegin);
  kept.Add(1, {.bytes = 4 * kOneMiB, .asked = 3}, kBegin);
  kept.Add(0, {.bytes = 4 * kOneMiB, .asked = 4}, kBegin);
  EXPECT_EQ(kept.CountUnmapped(0, 4 * kOneMiB), 3U);
  EXPECT_EQ(kept.CountUnmapped(0, 2 * kOneMiB), 0U);
  EXPECT_EQ(kept.Take(0, 4 * kOneMiB)->start, 100U);
  EXPECT_FALSE(kept.Take(0, 4 * kOneMiB).has_value());
  EXPECT_FALSE(kept.TakeUnmapped(0, 2 * kOneMiB).has_value());
  EXPECT_EQ(kept.TakeUnmapped(0, 4 * kOneMiB)->name, 1U);
  EXPECT_EQ(kept.TakeUnmapped(0, 4 * kOneMiB)->asked, 2U);
  EXPECT_THAT(kept.TakeAsked(0), ElementsAre(Field(&LeaseRange::asked, 4U)));
  EXPECT_THAT(kept.TakeOldAsked(kBegin), IsEmpty());
  EXPECT_THAT(kept.TakeOldAsked(kBegin + KeptLeases::kKeptFor),
              ElementsAre(Field(&LeaseRange::asked, 3U)));
  EXPECT_TRUE(kept.empty());
}

}  // namespace
}  // namespace gmb::preload
