// The work that a turn has left to do, and its order.
#include "broker/machine/turn.h"

#include <vector>

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

LeaseSettled Settled(uint64_t lease) { return {quota::LeaseId{lease}}; }

// 0: nothing is left.
uint64_t Next(Turn& turn) {
  const Work* work = turn.NextWork();
  return work == nullptr
             ? 0
             : std::get<LeaseSettled>(std::get<Fact>(*work)).lease.value;
}

TEST(TurnTest, WorkOfAPieceComesBeforeWhatWasQueuedEarlier) {
  Turn turn(quota::Instant{1}, absl::UnixEpoch());
  turn.Queue(Settled(1));
  turn.Queue(Settled(2));
  EXPECT_EQ(Next(turn), 1u);
  turn.Queue(Settled(3));
  turn.Queue(Settled(4));
  EXPECT_EQ(Next(turn), 3u);
  turn.Queue(Settled(5));
  EXPECT_EQ(Next(turn), 5u);
  EXPECT_EQ(Next(turn), 4u);
  EXPECT_EQ(Next(turn), 2u);
  EXPECT_EQ(Next(turn), 0u);
  EXPECT_FALSE(turn.exhausted());
}

TEST(TurnTest, ATurnThatDoesTooMuchStops) {
  Turn turn(quota::Instant{1}, absl::UnixEpoch());
  turn.LimitSteps(2);
  for (uint64_t lease = 1; lease <= 3; ++lease) turn.Queue(Settled(lease));
  EXPECT_EQ(Next(turn), 1u);
  EXPECT_EQ(Next(turn), 2u);
  EXPECT_EQ(Next(turn), 0u);
  EXPECT_TRUE(turn.exhausted());
}

}  // namespace
}  // namespace gmb::broker
