#include "ipc/gate_word.h"

#include <gtest/gtest.h>

#include <random>

namespace gmb::ipc {
namespace {

constexpr GateState kStates[] = {GateState::kOpen, GateState::kSync,
                                 GateState::kParked, GateState::kClosed};

TEST(GateWord, HoldsItsPartsApart) {
  for (const GateState state : kStates) {
    for (const bool paused : {false, true}) {
      for (const uint32_t scopes : {0u, 1u, GateWord::kMaxScopes}) {
        for (const uint64_t epoch :
             {uint64_t{0}, uint64_t{1}, GateWord::kMaxEpoch}) {
          const GateWord word(state, scopes, epoch, paused);
          EXPECT_EQ(word.state(), state);
          EXPECT_EQ(word.scopes(), scopes);
          EXPECT_EQ(word.epoch(), epoch);
          EXPECT_EQ(word.paused(), paused);
        }
      }
    }
  }
}

TEST(GateWord, ANewGateCountsAsActiveAndAnEmptyPageAsOpen) {
  EXPECT_EQ(kGateOff.scopes(), 1u);
  EXPECT_EQ(kGateOff.state(), GateState::kOpen);
  EXPECT_FALSE(GateWord(0).parked());
  EXPECT_EQ(GateWord(0).state(), GateState::kOpen);
}

TEST(GateWord, TheEpochGrowsWithEveryFirstScopeAndWraps) {
  const GateWord parked(GateState::kParked, 0, 7);
  const auto first = AfterEnter(parked);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(*first, GateWord(GateState::kOpen, 1, 8));
  EXPECT_EQ(AfterEnter(*first), GateWord(GateState::kOpen, 2, 8));
  const GateWord last(GateState::kOpen, 0, GateWord::kMaxEpoch);
  EXPECT_EQ(AfterEnter(last), GateWord(GateState::kOpen, 1, 0));
}

TEST(GateWord, AFullWordLetsNobodyIn) {
  const GateWord full(GateState::kOpen, GateWord::kMaxScopes, 3);
  EXPECT_FALSE(AfterEnter(full).has_value());
  EXPECT_TRUE(AfterLeave(full).has_value());
}

TEST(GateWord, ACopyIsTrueInItsEpochWhileNoScopeCanBeIn) {
  EXPECT_TRUE(CopyIsTrue(GateWord(GateState::kParked, 0, 5), 5));
  EXPECT_TRUE(CopyIsTrue(GateWord(GateState::kParked, 0, 5, true), 5));
  EXPECT_TRUE(CopyIsTrue(GateWord(GateState::kClosed, 0, 5), 5));
  EXPECT_FALSE(CopyIsTrue(GateWord(GateState::kParked, 0, 6), 5));
  EXPECT_FALSE(CopyIsTrue(GateWord(GateState::kSync, 0, 5), 5));
  EXPECT_FALSE(CopyIsTrue(GateWord(GateState::kOpen, 1, 5), 5));
  EXPECT_FALSE(CopyIsTrue(GateWord(GateState::kParked, 1, 5), 5));
}

// With any 64 bits in the page, nobody's move breaks what others rely on.
TEST(GateWord, MovesKeepTheirRulesOnAnyBits) {
  constexpr uint64_t kSeed = 20240611;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 200'000; ++i) {
    // Half of them with few scopes, as those of an honest client have.
    uint64_t bits = random();
    if (i % 2 == 0) bits &= ~(uint64_t{GateWord::kMaxScopes - 1} << 3);
    const GateWord word(bits);
    for (const auto next : {AfterEnter(word), AfterTakeBack(word)}) {
      if (!next) continue;
      EXPECT_FALSE(word.paused());
      EXPECT_NE(word.state(), GateState::kClosed);
      EXPECT_EQ(next->scopes(), word.scopes() + 1);
    }
    for (const auto next :
         {AfterLeave(word), AfterSyncBegin(word), AfterSyncEnd(word, true),
          AfterSyncEnd(word, false)}) {
      if (!next) continue;
      EXPECT_EQ(next->paused(), word.paused());
      EXPECT_EQ(next->epoch(), word.epoch());
      EXPECT_NE(word.state(), GateState::kClosed);
      EXPECT_NE(next->state(), GateState::kClosed);
    }
    const auto closed = AfterClose(word);
    EXPECT_EQ(closed.has_value(), word.parked());
    if (closed) {
      EXPECT_EQ(AfterReopen(*closed), AfterWithdraw(word));
    }
    const auto reopened = AfterReopen(word);
    if (reopened) {
      EXPECT_TRUE(reopened->parked());
    }
    EXPECT_EQ(AfterWithdraw(AfterPause(word)), AfterWithdraw(word));
    EXPECT_EQ(AfterPause(word).state(), word.state());
  }
}

}  // namespace
}  // namespace gmb::ipc
