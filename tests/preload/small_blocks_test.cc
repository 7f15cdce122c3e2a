#include "client/preload/small_blocks.h"

#include <map>
#include <random>
#include <set>

#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

constexpr uint64_t kChunk = uint64_t{2} << 20;

LeaseRange ChunkAt(uint64_t start) {
  return {.handle = nullptr, .start = start, .bytes = kChunk};
}

TEST(SmallBlocksTest, BlocksAreAlignedAndDoNotOverlap) {
  SmallBlocks blocks;
  EXPECT_EQ(blocks.Take(1), std::nullopt);
  blocks.AddChunk(ChunkAt(kChunk));
  const auto first = blocks.Take(1);
  const auto second = blocks.Take(513);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first % SmallBlocks::kAlignmentBytes, 0U);
  EXPECT_EQ(*second, *first + 512);
  EXPECT_EQ(blocks.Take(512), *second + 1024);
}

TEST(SmallBlocksTest, WhatIsFreeAgainIsJoined) {
  SmallBlocks blocks;
  blocks.AddChunk(ChunkAt(kChunk));
  const uint64_t half = kChunk / 2;
  const auto first = blocks.Take(half);
  const auto second = blocks.Take(half);
  EXPECT_EQ(blocks.Take(1), std::nullopt);
  EXPECT_EQ(blocks.Give(*second, half), std::nullopt);
  EXPECT_EQ(blocks.Give(*first, half), std::nullopt);
  EXPECT_EQ(blocks.Take(kChunk), kChunk);
}

TEST(SmallBlocksTest, ChunksSideBySideAreNotJoined) {
  SmallBlocks blocks;
  blocks.AddChunk(ChunkAt(kChunk));
  blocks.AddChunk(ChunkAt(2 * kChunk));
  EXPECT_EQ(blocks.Take(kChunk + 1), std::nullopt);
  ASSERT_TRUE(blocks.Take(kChunk).has_value());
  ASSERT_TRUE(blocks.Take(kChunk).has_value());
}

TEST(SmallBlocksTest, OfEmptyChunksOneIsKept) {
  SmallBlocks blocks;
  blocks.AddChunk(ChunkAt(kChunk));
  blocks.AddChunk(ChunkAt(8 * kChunk));
  const auto first = blocks.Take(kChunk);
  const auto second = blocks.Take(kChunk);
  EXPECT_FALSE(blocks.Give(*first, kChunk).has_value());
  const auto released = blocks.Give(*second, kChunk);
  ASSERT_TRUE(released.has_value());
  EXPECT_EQ(released->start, *second);
  const auto reserve = blocks.TakeReserve();
  ASSERT_TRUE(reserve.has_value());
  EXPECT_EQ(reserve->start, *first);
  EXPECT_FALSE(blocks.TakeReserve().has_value());
  EXPECT_EQ(blocks.Take(1), std::nullopt);
}

TEST(SmallBlocksTest, AChunkThatAnotherProcessHasIsNotKept) {
  SmallBlocks blocks;
  blocks.AddChunk(ChunkAt(kChunk));
  const auto only = blocks.Take(512);
  ASSERT_TRUE(only.has_value());
  blocks.LeaseOf(*only)->shared = true;
  const auto released = blocks.Give(*only, 512);
  ASSERT_TRUE(released.has_value());
  EXPECT_TRUE(released->shared);
  EXPECT_FALSE(blocks.TakeReserve().has_value());
}

// Random blocks: none overlaps another, and in the end all is whole again.
TEST(SmallBlocksTest, ManyBlocksInAnyOrder) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  SmallBlocks blocks;
  std::set<uint64_t> chunks;
  std::map<uint64_t, uint64_t> live;
  const auto give = [&](auto it) {
    const auto released = blocks.Give(it->first, it->second);
    live.erase(it);
    if (released.has_value()) {
      EXPECT_EQ(chunks.erase(released->start), 1U);
      const auto inside = live.lower_bound(released->start);
      EXPECT_TRUE(inside == live.end() ||
                  inside->first >= released->start + kChunk);
    }
  };
  for (uint64_t step = 1; step <= 20'000; ++step) {
    if (random() % 2 == 0 && !live.empty()) {
      give(std::next(live.begin(),
                     static_cast<int64_t>(random() % live.size())));
      continue;
    }
    const uint64_t bytes = 1 + random() % (1U << (random() % 21));
    auto start = blocks.Take(bytes);
    if (!start.has_value()) {
      blocks.AddChunk(ChunkAt(step * kChunk));
      chunks.insert(step * kChunk);
      start = blocks.Take(bytes);
    }
    ASSERT_TRUE(start.has_value());
    const auto next = live.lower_bound(*start);
    if (next != live.end()) {
      ASSERT_LE(*start + bytes, next->first);
    }
    if (next != live.begin()) {
      ASSERT_LE(std::prev(next)->first + std::prev(next)->second, *start);
    }
    live.emplace(*start, bytes);
  }
  while (!live.empty()) give(live.begin());
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_EQ(blocks.Take(kChunk), *chunks.begin());
}

}  // namespace
}  // namespace gmb::preload
