#include "client/preload/pool_usage.h"

#include "client/preload/small_blocks.h"
#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

CUmemoryPool Pool(intptr_t name) {
  return reinterpret_cast<CUmemoryPool>(name);
}

class PoolUsageTest : public testing::Test {
 protected:
  Block Small(uint64_t bytes, intptr_t pool = 1) {
    return {.bytes = bytes, .lease = {}, .pool = usage.NameOf(Pool(pool))};
  }
  Block Large(uint64_t bytes, uint64_t held, intptr_t pool = 1) {
    return {.bytes = bytes,
            .lease = LeaseRange{.bytes = held},
            .pool = usage.NameOf(Pool(pool))};
  }
  void Destroy(intptr_t pool) { usage.Destroyed(usage.Forget(Pool(pool))); }
  void Expect(uint64_t used, uint64_t reserved, intptr_t pool = 1) {
    const PoolUsage::Bytes bytes = usage.Of(Pool(pool));
    EXPECT_EQ(bytes.used, used);
    EXPECT_EQ(bytes.reserved, reserved);
  }

  PoolUsage usage;
};

TEST_F(PoolUsageTest, APoolThatNothingWasTakenFromHasNothing) {
  Expect(0, 0);
  usage.ResetUsedHigh(Pool(1));
  EXPECT_EQ(usage.Forget(Pool(1)), kNoPool);
  usage.NotDestroyed(Pool(1), kNoPool);
  Destroy(1);
  Expect(0, 0);
}

TEST_F(PoolUsageTest, SmallBlocksReserveTheChunksThatTheyWouldFill) {
  for (int i = 0; i < 4; ++i) usage.Took(Small(kMiB / 2));
  Expect(2 * kMiB, 2 * kMiB);
  usage.Took(Small(1));
  Expect(2 * kMiB + 512, 4 * kMiB);
  usage.Freed(Small(1));
  Expect(2 * kMiB, 4 * kMiB);
  usage.GaveBack(Small(1));
  Expect(2 * kMiB, 2 * kMiB);
}

TEST_F(PoolUsageTest, WhatIsFreedIsReservedUntilItIsGivenBack) {
  const Block block = Large(3 * kMiB, 4 * kMiB);
  usage.Took(block);
  Expect(3 * kMiB, 4 * kMiB);
  usage.Freed(block);
  Expect(0, 4 * kMiB);
  usage.TookBack(block);
  Expect(3 * kMiB, 4 * kMiB);
  usage.Freed(block);
  usage.GaveBack(block);
  Expect(0, 0);
}

TEST_F(PoolUsageTest, TheHighMarksStayUntilTheyAreReset) {
  const Block first = Large(3 * kMiB, 4 * kMiB);
  const Block second = Large(2 * kMiB, 2 * kMiB);
  usage.Took(first);
  usage.Took(second);
  usage.Freed(first);
  usage.GaveBack(first);
  EXPECT_EQ(usage.Of(Pool(1)).used_high, 5 * kMiB);
  EXPECT_EQ(usage.Of(Pool(1)).reserved_high, 6 * kMiB);
  usage.ResetUsedHigh(Pool(1));
  EXPECT_EQ(usage.Of(Pool(1)).used_high, 2 * kMiB);
  EXPECT_EQ(usage.Of(Pool(1)).reserved_high, 6 * kMiB);
  usage.ResetReservedHigh(Pool(1));
  EXPECT_EQ(usage.Of(Pool(1)).reserved_high, 2 * kMiB);
}

TEST_F(PoolUsageTest, WhatIsAboveTheThresholdMayGoBack) {
  const Block block = Large(3 * kMiB, 4 * kMiB);
  const PoolName pool = block.pool;
  const auto above = [&] { return usage.AboveThresholds({}); };
  EXPECT_FALSE(above().contains(pool));
  EXPECT_GT(above().at(kNoPool), uint64_t{1} << 62);
  usage.Took(block);
  EXPECT_EQ(above().at(pool), 4 * kMiB);
  usage.SetThreshold(Pool(1), kMiB);
  EXPECT_EQ(above().at(pool), 3 * kMiB);
  usage.SetThreshold(Pool(1), 4 * kMiB);
  EXPECT_FALSE(above().contains(pool));
  Destroy(1);
  EXPECT_EQ(above().at(pool), 4 * kMiB) << "nothing holds on to it";
}

// As they are, though a chunk is reserved for them: they alone can go back.
TEST_F(PoolUsageTest, SmallBlocksAreAboveTheThresholdByTheirOwnBytes) {
  const Block block = Small(kMiB / 2);
  usage.Took(block);
  usage.SetThreshold(Pool(1), kMiB);
  EXPECT_FALSE(usage.AboveThresholds({}).contains(block.pool));
  usage.SetThreshold(Pool(1), kMiB / 2 - 1);
  EXPECT_EQ(usage.AboveThresholds({}).at(block.pool), 1U);
  EXPECT_TRUE(usage.Above(Pool(1), kMiB, {}).empty());
  EXPECT_TRUE(usage.Above(Pool(1), kMiB / 2, {}).empty());
  EXPECT_EQ(usage.Above(Pool(1), 0, {}).at(block.pool), kMiB / 2);
  EXPECT_TRUE(usage.Above(Pool(2), 0, {}).empty());
}

TEST_F(PoolUsageTest, WhatIsOnItsWayBackIsNoSurplus) {
  const Block block = Large(3 * kMiB, 4 * kMiB);
  for (int i = 0; i < 3; ++i) usage.Took(block);
  for (int i = 0; i < 2; ++i) usage.Freed(block);
  const PoolBytes waiting = {{block.pool, 4 * kMiB}};
  Expect(3 * kMiB, 12 * kMiB);
  EXPECT_EQ(usage.Above(Pool(1), 2 * kMiB, waiting).at(block.pool), 6 * kMiB);
  EXPECT_TRUE(usage.Above(Pool(1), 8 * kMiB, waiting).empty());
  EXPECT_EQ(usage.AboveThresholds(waiting).at(block.pool), 8 * kMiB);
  usage.TookBack(block);
  EXPECT_EQ(usage.Above(Pool(1), 8 * kMiB, waiting).at(block.pool), 4 * kMiB);
}

// Also before anything is taken from it, as programs do.
TEST_F(PoolUsageTest, AThresholdIsOfOnePool) {
  usage.SetThreshold(Pool(1), kMiB);
  const Block block = Large(2 * kMiB, 2 * kMiB);
  usage.Took(block);
  usage.Took(Large(2 * kMiB, 2 * kMiB, 2));
  EXPECT_EQ(usage.AboveThresholds({}).at(block.pool), kMiB);
  EXPECT_EQ(usage.AboveThresholds({}).at(usage.NameOf(Pool(2))), 2 * kMiB);
}

TEST_F(PoolUsageTest, BlocksOfNoPoolAndOfOtherPoolsAreNotCounted) {
  usage.Took({.bytes = kMiB, .lease = {}});
  usage.Took(Small(512, 2));
  Expect(0, 0);
  Expect(512, 2 * kMiB, 2);
}

TEST_F(PoolUsageTest, APoolOfTheSameHandleIsAnother) {
  const Block old = Small(512);
  usage.Took(old);
  Destroy(1);
  Expect(0, 0);
  usage.Took(Small(1024));
  usage.Freed(old);
  usage.GaveBack(old);
  Expect(1024, 2 * kMiB);
}

TEST_F(PoolUsageTest, APoolThatTheDriverDidNotDestroyIsAsBefore) {
  const Block block = Small(512);
  usage.SetThreshold(Pool(1), kMiB);
  usage.Took(block);
  usage.Freed(block);
  EXPECT_EQ(usage.Forget(Pool(1)), block.pool);
  EXPECT_EQ(usage.HandleOf(block.pool), nullptr);
  Expect(0, 0);
  usage.NotDestroyed(Pool(1), block.pool);
  EXPECT_EQ(usage.HandleOf(block.pool), Pool(1));
  Expect(0, 2 * kMiB);
  EXPECT_EQ(usage.Of(Pool(1)).used_high, 512U);
  EXPECT_FALSE(usage.AboveThresholds({}).contains(block.pool));
}

TEST_F(PoolUsageTest, AHandleThatHasAnotherNameMeanwhileKeepsThat) {
  const Block old = Small(512);
  usage.SetThreshold(Pool(1), kMiB);
  usage.Took(old);
  EXPECT_EQ(usage.Forget(Pool(1)), old.pool);
  usage.Took(Small(1024));
  usage.NotDestroyed(Pool(1), old.pool);
  EXPECT_EQ(usage.HandleOf(old.pool), nullptr);
  Expect(1024, 2 * kMiB);
  EXPECT_EQ(usage.AboveThresholds({}).at(old.pool), 512U)
      << "nothing holds on to it";
}

}  // namespace
}  // namespace gmb::preload
