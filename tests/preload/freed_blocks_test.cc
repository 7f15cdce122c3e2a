#include "client/preload/freed_blocks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

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
