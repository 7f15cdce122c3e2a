#include "client/preload/freed_blocks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "client/preload/allocations.h"

namespace gmb::preload {
namespace {

using Clock = std::chrono::steady_clock;

Block FreedAt(uint64_t start) {
  return {.start = start, .bytes = 512, .lease = {}};
}

OrderedFree Ordered(uint64_t start, CUevent event) {
  OrderedFree freed;
  freed.block = FreedAt(start);
  freed.event = event;
  freed.freed_at = Clock::now();
  return freed;
}

CUevent AnEvent() { return reinterpret_cast<CUevent>(intptr_t{8}); }

TEST(FreedBlocksTest, WhatIsTakenIsTakenOnce) {
  FreedBlocks freed;
  const Driver driver;
  EXPECT_FALSE(freed.TakeDue(driver, Clock::now()).has_value());
  freed.Add(FreedAt(4096));
  const auto taken = freed.TakeDue(driver, Clock::now());
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->blocks.size(), 1U);
  EXPECT_FALSE(freed.TakeDue(driver, Clock::now()).has_value());
}

TEST(FreedBlocksTest, ABlockWhoseEventIsLostWaitsForItsDevice) {
  FreedBlocks freed;
  freed.Add(Ordered(4096, AnEvent()));
  freed.Add(Ordered(8192, AnEvent()));
  {
    FreedBlocks::Taken taken = freed.TakeAll(Clock::now());
    ASSERT_EQ(taken.ordered.size(), 2U);
    taken.ordered.front().event = nullptr;
    freed.PutBack(taken);
  }
  const FreedBlocks::Taken again = freed.TakeAll(Clock::now());
  ASSERT_EQ(again.blocks.size(), 1U);
  EXPECT_EQ(again.blocks.front().start, 4096U);
  EXPECT_EQ(again.ordered.size(), 1U);
}

// A pool that the program has freed blocks of, each a lease of 2 MiB.
class FreedBlocksOfAPoolTest : public testing::Test {
 protected:
  static constexpr uint64_t kLease = uint64_t{2} << 20;

  FreedBlocksOfAPoolTest() {
    driver_.cuEventQuery = [](CUevent) { return CUDA_SUCCESS; };
  }
  OrderedFree Free() {
    start_ += kLease;
    allocations_.AddLarge({.pool = pool_}, kLease,
                          {.start = start_, .bytes = kLease});
    bool ours = false;
    OrderedFree freed = Ordered(start_, AnEvent());
    freed.block = allocations_.Take(start_, &ours).value();
    return freed;
  }
  void FreeOrdered(Clock::duration ago) {
    OrderedFree freed = Free();
    freed.freed_at = Clock::now() - ago;
    freed_.Add(freed);
  }
  std::optional<FreedBlocks::Taken> TakeAbove(uint64_t kept) {
    return freed_.TakeSurplus(
        driver_,
        [&](const PoolBytes& waiting) {
          return allocations_.Above(pool_, kept, waiting);
        },
        std::numeric_limits<uint64_t>::max());
  }

  CUmemoryPool pool_ = reinterpret_cast<CUmemoryPool>(intptr_t{1});
  Driver driver_;
  Allocations allocations_;
  FreedBlocks freed_;
  uint64_t start_ = 0;
};

// They are the pool's still, as the program reads it.
TEST_F(FreedBlocksOfAPoolTest, WhatASweepHasInHandIsNoSurplus) {
  for (int i = 0; i < 4; ++i) FreeOrdered(OrderedFrees::kKeptFor);
  for (int i = 0; i < 4; ++i) FreeOrdered(Clock::duration::zero());
  const auto swept = freed_.TakeDue(driver_, Clock::now());
  ASSERT_TRUE(swept.has_value());
  ASSERT_EQ(swept->ordered.size(), 4U);
  EXPECT_EQ(allocations_.BytesOf(pool_).reserved, 8 * kLease);
  EXPECT_FALSE(TakeAbove(4 * kLease).has_value()) << "it keeps what waits";
  const auto taken = TakeAbove(3 * kLease);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->ordered.size(), 1U);
}

TEST_F(FreedBlocksOfAPoolTest, ASurplusIsTakenOnce) {
  for (int i = 0; i < 4; ++i) FreeOrdered(Clock::duration::zero());
  const auto first = TakeAbove(3 * kLease);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->ordered.size(), 1U);
  EXPECT_FALSE(TakeAbove(3 * kLease).has_value());
}

TEST_F(FreedBlocksOfAPoolTest, WhatGoesWithTheNextSweepIsNoSurplus) {
  freed_.Add(Free().block);
  FreeOrdered(Clock::duration::zero());
  EXPECT_FALSE(TakeAbove(kLease).has_value());
  EXPECT_TRUE(TakeAbove(0).has_value());
}

TEST(FreedBlocksTest, WhoTakesAllWaitsForThoseWhoHaveSomeInHand) {
  FreedBlocks freed;
  std::atomic<bool> given = false;
  std::thread waits;
  {
    const FreedBlocks::Taken taken = freed.TakeAll(Clock::now());
    waits = std::thread([&] {
      const FreedBlocks::Taken all =
          freed.TakeAll(Clock::now() + std::chrono::minutes(1));
      EXPECT_TRUE(given);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    given = true;
  }
  waits.join();
}

TEST(FreedBlocksTest, WhoTakesAllWaitsNotForEver) {
  FreedBlocks freed;
  const FreedBlocks::Taken taken = freed.TakeAll(Clock::now());
  const auto until = Clock::now() + std::chrono::milliseconds(20);
  const FreedBlocks::Taken all = freed.TakeAll(until);
  EXPECT_GE(Clock::now(), until);
}

}  // namespace
}  // namespace gmb::preload
