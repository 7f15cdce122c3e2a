// Borrowers that are paused for a guarantee (docs/reclaim.md, "The four
// steps"; docs/protocol.md, "Pausing").
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"
#include "tests/sanitized.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachinePausesTest : public MachineFixture {
 protected:
  explicit MachinePausesTest(const MachineWorld& shape = {})
      : MachineFixture(shape) {}
  void SetUp() override {
    SetTenant("a", {.pause_grace = seconds(2)});
    SetTenant("owner", {.guarantee = 32});
    busy = Active("a");
    owner = Connect("owner");
  }
  // Lacks 8 of what `busy` has.
  uint64_t AskWithin() { return Ask(owner, 32, {.wait = seconds(60)}); }
  static bool IsPaused(const SimClient* client) {
    return GateOf(client).paused();
  }
  SimClient* busy = nullptr;
  SimClient* owner = nullptr;
};

TEST_F(MachinePausesTest, ABorrowerIsPausedUntilItParksAndIsEvictedThen) {
  const quota::LeaseId lease = Lease(busy, 40);
  const uint64_t id = AskWithin();
  EXPECT_TRUE(IsPaused(busy));
  EXPECT_EQ(Told(busy, v1::BrokerMessage::kPausing), 1u);
  EXPECT_EQ(GateOf(busy).scopes(), 1u) << "the scope that is in goes on";
  EXPECT_FALSE(Enter(busy)) << "and no new one comes in";
  EXPECT_EQ(Where(lease), "mapped");
  Park(busy);
  RunFor(milliseconds(5));
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(Outcome(owner, id), "granted");
  EXPECT_FALSE(IsPaused(busy)) << "closing it was the pause's end";
  EXPECT_EQ(killed, 0);
}

TEST_F(MachinePausesTest, ItEndsAtItsGraceAndIsNotBegunAgainForTenSeconds) {
  const quota::LeaseId lease = Lease(busy, 40);
  AskWithin();
  RunFor(milliseconds(1990));
  EXPECT_TRUE(IsPaused(busy));
  RunFor(milliseconds(20));
  EXPECT_FALSE(IsPaused(busy));
  ASSERT_EQ(Events("pause_withdrawn").size(), 1u);
  EXPECT_EQ(Events("pause_withdrawn")[0].message(),
            "a scope did not end in time");
  EXPECT_EQ(Where(lease), "mapped");
  RunFor(milliseconds(9900));
  EXPECT_FALSE(IsPaused(busy));
  RunFor(milliseconds(200));
  EXPECT_TRUE(IsPaused(busy)) << "and then it is tried anew";
  EXPECT_EQ(killed, 0) << "nobody is killed for working on";
}

TEST_F(MachinePausesTest, ItEndsWhenTheOwnerNeedsNothingAnyMore) {
  Lease(busy, 40);
  const uint64_t id = AskWithin();
  ASSERT_TRUE(IsPaused(busy));
  Cancel(owner, id);
  EXPECT_FALSE(IsPaused(busy));
  EXPECT_EQ(Events("pause_withdrawn")[0].message(),
            "the memory is no longer needed");
  // That is no failed step: the next one is begun at once.
  AskWithin();
  EXPECT_TRUE(IsPaused(busy));
}

TEST_F(MachinePausesTest, AWaitingScopeIsLetInWhenThePauseEnds) {
  Lease(busy, 40);
  const uint64_t id = AskWithin();
  const uint64_t restore = Restore(busy, seconds(60));
  EXPECT_EQ(Outcome(busy, restore), "nothing");
  Cancel(owner, id);
  EXPECT_EQ(Outcome(busy, restore), "restored");
  EXPECT_TRUE(Enter(busy));
}

TEST_F(MachinePausesTest, NobodyIsPausedForABorrower) {
  Lease(busy, 60);
  SetTenant("b");
  SimClient* borrower = Parked("b");
  Ask(borrower, 20, {.wait = seconds(10)});
  RunFor(seconds(5));
  EXPECT_FALSE(IsPaused(busy));
  EXPECT_EQ(Told(busy, v1::BrokerMessage::kPausing), 0u);
}

TEST_F(MachinePausesTest, NobodyIsPausedWithinItsGuarantee) {
  SetTenant("a", {.guarantee = 32});
  Lease(busy, 32);
  SetTenant("c");
  SimClient* parked = Parked("c");
  const quota::LeaseId borrowed = Lease(parked, 32);
  const uint64_t id = AskWithin();
  EXPECT_FALSE(IsPaused(busy));
  Work();
  EXPECT_EQ(Where(borrowed), "evicted");
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachinePausesTest, ParkedMemoryIsTakenBeforeAnybodyIsPaused) {
  Lease(busy, 20);
  SimClient* parked = Parked("a");
  const quota::LeaseId lease = Lease(parked, 20);
  const uint64_t id = AskWithin();
  EXPECT_FALSE(IsPaused(busy));
  Work();
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachinePausesTest, TheOneThatHasBorrowedMostByWeightComesFirst) {
  SetTenant("heavy", {.weight = 4});
  SimClient* heavy = Active("heavy");
  Lease(heavy, 28);
  Lease(busy, 20);  // of weight 1
  AskWithin();
  EXPECT_TRUE(IsPaused(busy));
  EXPECT_FALSE(IsPaused(heavy));
}

TEST_F(MachinePausesTest, AboveItsGuaranteeAPausedSessionIsDeniedAtOnce) {
  Lease(busy, 40);
  AskWithin();
  ASSERT_TRUE(IsPaused(busy));
  const uint64_t id = Ask(busy, 20, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(busy, id), "PAUSING");
  EXPECT_NE(AnswerTo(busy, id).error().message().find("end the scope"),
            std::string::npos);
  RunFor(milliseconds(2100));
  ASSERT_FALSE(IsPaused(busy));
  EXPECT_EQ(Outcome(busy, Ask(busy, 20, {.wait = seconds(60)})), "waits")
      << "and as others after that";
}

TEST_F(MachinePausesTest, WhatItWaitsForIsDeniedWhenItsPauseBegins) {
  SetTenant("c");
  SimClient* other = Active("c");
  Lease(other, 20);
  Lease(busy, 30);
  const uint64_t id = Ask(busy, 20, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(busy, id), "waits");
  AskWithin();
  ASSERT_TRUE(IsPaused(busy));
  EXPECT_EQ(Outcome(busy, id), "PAUSING")
      << "a scope that waited for it would never end";
}

TEST_F(MachinePausesTest, AGroupIsPausedAsAWhole) {
  SimClient* one = Active("a", "ranks");
  SimClient* two = Active("a", "ranks");
  const quota::LeaseId lease = Lease(one, 40);
  const uint64_t id = AskWithin();
  EXPECT_TRUE(IsPaused(one));
  EXPECT_TRUE(IsPaused(two));
  Park(one);
  RunFor(milliseconds(10));
  EXPECT_EQ(Where(lease), "mapped") << "the other one works on";
  Park(two);
  RunFor(milliseconds(10));
  EXPECT_TRUE(IsClosed(one));
  EXPECT_TRUE(IsClosed(two));
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachinePausesTest, AMemberThatIsOffEndsTheOthersPause) {
  SetTenant("b", {.pause_grace = seconds(2)});
  SimClient* one = Active("a", "ranks");
  Lease(one, 22);
  SimClient* other = Active("b");
  Lease(other, 20);
  AskWithin();
  ASSERT_TRUE(IsPaused(one)) << "it has borrowed most";
  SimClient* two = Connect("a");
  ASSERT_EQ(Outcome(two, SetGate(two, false, "ranks")), "gate set");
  RunFor(milliseconds(10));
  EXPECT_FALSE(IsPaused(one)) << "nothing of it can be taken";
  EXPECT_TRUE(IsPaused(other));
}

TEST_F(MachinePausesTest, AGateThatIsTurnedOffEndsItsPause) {
  SetTenant("owner", {.guarantee = 20});
  Lease(busy, 44);
  Lease(owner, 20);
  SetTenant("owner", {.guarantee = 44});
  const uint64_t more = Ask(owner, 10, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(owner, more), "waits");
  ASSERT_TRUE(IsPaused(busy));
  EXPECT_EQ(Outcome(busy, SetGate(busy, false)), "OVERCOMMITTED")
      << "the owner's guarantee rests on it";
  EXPECT_TRUE(IsPaused(busy));
  Cancel(owner, more);
  SetTenant("owner", {.guarantee = 20});
  EXPECT_EQ(Outcome(busy, SetGate(busy, false)), "gate set");
  EXPECT_FALSE(IsPaused(busy));
}

TEST_F(MachinePausesTest, ItIsSaidAgainOnANewStreamWhileItLasts) {
  Lease(busy, 40);
  const uint64_t id = AskWithin();
  NewStream(busy);
  EXPECT_EQ(Told(busy, v1::BrokerMessage::kPausing), 2u);
  Cancel(owner, id);
  NewStream(busy);
  EXPECT_EQ(Told(busy, v1::BrokerMessage::kPausing), 2u);
}

TEST_F(MachinePausesTest, ASessionThatEndsUnderItsPauseGivesItsBytes) {
  Lease(busy, 40);
  const uint64_t id = AskWithin();
  ASSERT_TRUE(IsPaused(busy));
  End(busy);
  Work();
  EXPECT_EQ(Outcome(owner, id), "granted");
}

class MachineNoPausesTest : public MachinePausesTest {
 protected:
  static MachineWorld Shape() {
    MachineWorld shape;
    shape.options.planner.pause = false;
    return shape;
  }
  MachineNoPausesTest() : MachinePausesTest(Shape()) {}
};

TEST_F(MachineNoPausesTest, AnOperatorMayDoWithout) {
  Lease(busy, 40);
  const uint64_t id = AskWithin();
  RunFor(seconds(3));
  EXPECT_FALSE(IsPaused(busy));
  Park(busy);
  RunFor(milliseconds(30));
  EXPECT_EQ(Outcome(owner, id), "granted") << "parked memory is taken";
}

// Very many are paused, and none of them parks.
class MachineManyPausesTest : public MachinePausesTest {
 protected:
  static constexpr uint64_t kSessions = FewerIfSanitized(200);
  static constexpr uint64_t kEach = 8;
  static MachineWorld Wide() {
    MachineWorld shape{.granules = kSessions * kEach,
                       .host_granules = kSessions * kEach};
    shape.options.max_sessions = 2000;
    return shape;
  }
  MachineManyPausesTest() : MachinePausesTest(Wide()) { world.CheckEvery(100); }
  void SetUp() override {
    SetTenant("a", {.pause_grace = seconds(60)});
    SetTenant("owner", {.guarantee = kSessions * kEach});
    owner = Connect("owner");
    for (uint64_t i = 0; i < kSessions; ++i) {
      workers.push_back(Active("a"));
      for (uint64_t k = 0; k < kEach; ++k) Lease(workers.back(), 1);
    }
    Ask(owner, kSessions * kEach, {.wait = seconds(100)});
    for (int i = 0; i < 100 && state().pausing->size() < kSessions; ++i)
      RunFor(milliseconds(20));
    ASSERT_GE(state().pausing->size(), kSessions);
  }
  [[nodiscard]] uint64_t Looks() const { return state().pause_round->looks; }
  std::vector<SimClient*> workers;
};

TEST_F(MachineManyPausesTest, NoTurnLooksAtAllOfThem) {
  for (int turn = 0; turn < 50; ++turn) {
    const uint64_t before = Looks();
    world.AdvanceToDue();
    EXPECT_LE(Looks() - before, 1100u);
  }
}

TEST_F(MachineManyPausesTest, RoundsAreTheFartherApartTheMoreTheyAre) {
  const uint64_t before = Looks();
  RunFor(milliseconds(400));
  EXPECT_GE(Looks() - before, 20 * kSessions) << "each is looked at";
  EXPECT_LE(Looks() - before, 240'000u);
}

TEST_F(MachineManyPausesTest, TheOneThatParksIsTakenSoon) {
  Park(workers[kSessions / 2]);
  RunFor(milliseconds(25));
  EXPECT_GE(Told(workers[kSessions / 2], v1::BrokerMessage::kEvict), 1u);
}

}  // namespace
}  // namespace gmb::broker
