// Slabs that came back (docs/decisions.md): for whom they are kept, and which
// goes first.
#include "broker/machine/returned_slabs.h"

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

using quota::Instant;
using quota::TenantId;

ReturnedSlabs::Returned Of(SlabId id, uint64_t bytes, uint64_t tenant,
                           int64_t expires) {
  return {.slab = {.id = id, .bytes = bytes},
          .tenant = TenantId{static_cast<uint32_t>(tenant)},
          .expires = Instant{expires}};
}

TEST(ReturnedSlabsTest, AtFirstThereIsNone) {
  ReturnedSlabs slabs;
  EXPECT_TRUE(slabs.empty());
  EXPECT_EQ(slabs.size(), 0u);
  EXPECT_EQ(slabs.bytes(), 0u);
  EXPECT_EQ(slabs.next_expiry(), Instant::Max());
  EXPECT_FALSE(slabs.Take(TenantId{1}, 4).has_value());
}

TEST(ReturnedSlabsTest, ASlabServesItsTenantAloneAndItsSizeAlone) {
  ReturnedSlabs slabs;
  slabs.Keep(Of(1, 4, 1, 10));
  slabs.Keep(Of(2, 8, 1, 11));
  EXPECT_FALSE(slabs.Take(TenantId{2}, 4).has_value());
  EXPECT_FALSE(slabs.Take(TenantId{1}, 5).has_value());
  EXPECT_EQ(slabs.bytes(), 12u);
  EXPECT_EQ(slabs.Take(TenantId{1}, 4)->id, 1u);
  EXPECT_FALSE(slabs.Take(TenantId{1}, 4).has_value()) << "it is taken";
  EXPECT_EQ(slabs.size(), 1u);
  EXPECT_EQ(slabs.bytes(), 8u);
}

TEST(ReturnedSlabsTest, TheNewestServesFirstAndTheOldestGoesFirst) {
  ReturnedSlabs slabs;
  for (const SlabId id : {1, 2, 3})
    slabs.Keep(Of(id, 4, 1, 10 * static_cast<int64_t>(id)));
  EXPECT_EQ(slabs.next_expiry(), Instant{10});
  EXPECT_EQ(slabs.Take(TenantId{1}, 4)->id, 3u);
  EXPECT_EQ(slabs.Pop().slab.id, 1u);
  EXPECT_EQ(slabs.next_expiry(), Instant{20});
  EXPECT_EQ(slabs.bytes(), 4u);
}

// Not in the order in which they come: some are kept for longer than others.
TEST(ReturnedSlabsTest, TheyStandInTheOrderOfTheirExpiry) {
  ReturnedSlabs slabs;
  slabs.Keep(Of(1, 4, 1, 30));
  slabs.Keep(Of(2, 4, 2, 10));
  slabs.Keep(Of(3, 4, 3, 20));
  slabs.Keep(Of(4, 4, 4, 20));
  EXPECT_EQ(slabs.next_expiry(), Instant{10});
  for (const SlabId id : {2, 3, 4, 1}) EXPECT_EQ(slabs.Pop().slab.id, id);
  EXPECT_TRUE(slabs.empty());
  EXPECT_EQ(slabs.bytes(), 0u);
}

}  // namespace
}  // namespace gmb::broker
