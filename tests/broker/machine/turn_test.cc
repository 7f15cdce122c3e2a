// A turn: effects in their order, and work that goes depth first.
#include "broker/machine/turn.h"

#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

std::unique_ptr<Turn> NewTurn() {
  return std::make_unique<Turn>(quota::Instant{5'000'000'000},
                                absl::FromUnixSeconds(1000));
}

class TurnTest : public testing::Test {
 protected:
  void Queue(uint64_t number) {
    turn->Queue(Fact(LeaseSettled{quota::LeaseId{number}}));
  }
  // 0: there is none.
  uint64_t Next() {
    const Work* work = turn->NextWork();
    if (work == nullptr) return 0;
    return std::get<LeaseSettled>(std::get<Fact>(*work)).lease.value;
  }
  std::unique_ptr<Turn> turn = NewTurn();
};

TEST_F(TurnTest, TimeStandsStill) {
  EXPECT_EQ(turn->now(), quota::Instant{5'000'000'000});
  EXPECT_EQ(turn->wall(), absl::FromUnixSeconds(1000));
}

TEST_F(TurnTest, EffectsComeInTheirOrderAndOnce) {
  turn->Add(HangUp{1, absl::OkStatus()});
  turn->Publish(v1::Event());
  turn->Add(HangUp{2, absl::OkStatus()});
  const std::vector<Effect> effects = turn->TakeEffects();
  ASSERT_EQ(effects.size(), 3u);
  EXPECT_EQ(std::get<HangUp>(effects[0]).session, 1u);
  EXPECT_TRUE(std::holds_alternative<Publish>(effects[1]));
  EXPECT_EQ(std::get<HangUp>(effects[2]).session, 2u);
  EXPECT_TRUE(turn->TakeEffects().empty());
}

TEST_F(TurnTest, AnEventIsStampedWithTheWallTime) {
  v1::Event event;
  event.set_kind("lease_granted");
  event.mutable_at()->set_seconds(1);
  turn->Publish(event);
  const std::vector<Effect> effects = turn->TakeEffects();
  const v1::Event& published = std::get<Publish>(effects.front()).event;
  EXPECT_EQ(published.kind(), "lease_granted");
  EXPECT_EQ(published.at().seconds(), 1000);
}

TEST_F(TurnTest, WhatAPieceOfWorkQueuesComesBeforeWhatWasQueuedEarlier) {
  Queue(1);
  Queue(2);
  EXPECT_EQ(Next(), 1u);
  Queue(11);
  Queue(12);
  EXPECT_EQ(Next(), 11u);
  Queue(111);
  for (const uint64_t next : {111u, 12u, 2u, 0u}) EXPECT_EQ(Next(), next);
  Queue(3);
  EXPECT_EQ(Next(), 3u) << "what is queued later is done all the same";
}

TEST_F(TurnTest, APieceStaysGoodUntilTheNextIsAskedFor) {
  Queue(1);
  Queue(2);
  const Work* work = turn->NextWork();
  for (uint64_t i = 0; i < 100; ++i) Queue(100 + i);
  EXPECT_EQ(std::get<LeaseSettled>(std::get<Fact>(*work)).lease.value, 1u);
}

TEST_F(TurnTest, ATurnThatGoesRoundInCirclesIsNoticed) {
  turn->LimitSteps(10);
  Queue(1);
  uint64_t steps = 0;
  while (Next() != 0) {
    ++steps;
    Queue(1);
  }
  EXPECT_EQ(steps, 10u);
  EXPECT_TRUE(turn->exhausted());
}

TEST_F(TurnTest, OneThatEndsIsNotExhausted) {
  turn->LimitSteps(3);
  Queue(1);
  Queue(2);
  while (Next() != 0) {
  }
  EXPECT_FALSE(turn->exhausted());
}

// Its gate's page is unmapped when it is destroyed: not under the lock.
TEST_F(TurnTest, ABuriedSessionLivesUntilTheLockIsGivenUp) {
  turn->Bury(Placed<Session>(
      std::unique_ptr<Session>(new Session{.id = 7,
                                           .peer = {},
                                           .token = {},
                                           .tenant = std::nullopt,
                                           .since = {},
                                           .gate = Placed<SessionGate>(nullptr),
                                           .talk = {},
                                           .group = {},
                                           .never_lends = {},
                                           .leases = {},
                                           .leased_bytes = {},
                                           .last_move = {},
                                           .waking = {},
                                           .trims = {}})));
  const auto buried = turn->TakeBuried();
  ASSERT_EQ(buried.size(), 1u);
  EXPECT_EQ(buried.front()->id, 7u);
  EXPECT_TRUE(turn->TakeBuried().empty());
}

}  // namespace
}  // namespace gmb::broker
