#include "client/preload/allocations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gmb::preload {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kMiB = uint64_t{1} << 20;

LeaseRange LeaseAt(uint64_t start, uint64_t bytes) {
  return {.handle = reinterpret_cast<gmb_lease*>(start),
          .start = start,
          .bytes = bytes};
}

TEST(AllocationsTest, ABlockIsTakenOnceAndItsLeaseStaysOursUntilItIsRemoved) {
  Allocations allocations;
  const LeaseRange lease = LeaseAt(16 * kMiB, 4 * kMiB);
  allocations.AddLarge({.device = 1}, 3 * kMiB, lease);
  EXPECT_EQ(allocations.Find(lease.start + 1)->device, 1);
  EXPECT_TRUE(allocations.LeasedFrom(1));
  EXPECT_FALSE(allocations.LeasedFrom(0));
  bool ours = false;
  EXPECT_FALSE(allocations.Take(lease.start + 1, &ours).has_value());
  EXPECT_TRUE(ours);  // its middle
  const std::optional<Block> block = allocations.Take(lease.start, &ours);
  ASSERT_TRUE(block.has_value());
  EXPECT_FALSE(allocations.Take(lease.start, &ours).has_value());
  EXPECT_TRUE(ours);
  EXPECT_FALSE(allocations.LeaseOf(*block).has_value());
  EXPECT_EQ(allocations.Give(*block)->start, lease.start);
  allocations.RemoveRange(lease);
  EXPECT_FALSE(allocations.Take(lease.start, &ours).has_value());
  EXPECT_FALSE(ours);
}

TEST(AllocationsTest, ABlockThatIsPutBackIsTheProgramsStill) {
  Allocations allocations;
  allocations.AddLarge({.device = 0}, kMiB, LeaseAt(16 * kMiB, 2 * kMiB));
  bool ours = false;
  const std::optional<Block> block = allocations.Take(16 * kMiB, &ours);
  ASSERT_TRUE(block.has_value());
  allocations.PutBack(*block);
  EXPECT_TRUE(allocations.Find(16 * kMiB).has_value());
  EXPECT_TRUE(allocations.LeaseOf(*block).has_value());
}

TEST(AllocationsTest, SmallBlocksShareAChunkThatIsKeptInReserve) {
  Allocations allocations;
  const Allocations::Source source = {.device = 0};
  EXPECT_FALSE(allocations.AddSmall(source, 512).has_value());
  const LeaseRange chunk = LeaseAt(16 * kMiB, SmallBlocks::kChunkBytes);
  const uint64_t first = allocations.AddSmallIn(chunk, source, 512);
  const std::optional<uint64_t> second = allocations.AddSmall(source, 512);
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(first, *second);
  bool ours = false;
  for (const uint64_t start : {first, *second}) {
    const std::optional<Block> block = allocations.Take(start, &ours);
    ASSERT_TRUE(block.has_value());
    EXPECT_FALSE(allocations.Give(*block).has_value());
  }
  ASSERT_EQ(allocations.TakeReserves().size(), 1U);
  EXPECT_TRUE(allocations.TakeReserves().empty());
}

}  // namespace
}  // namespace gmb::preload
