// The choice of whose memory is taken for whom, and when (docs/reclaim.md).
#include <chrono>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineReclaimTest : public MachineFixture {
 protected:
  explicit MachineReclaimTest(const MachineWorld& shape = {})
      : MachineFixture(shape) {}
  std::vector<quota::LeaseId> Leases(SimClient* client, int count,
                                     uint64_t granules, const Wish& wish = {}) {
    std::vector<quota::LeaseId> leases;
    leases.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i)
      leases.push_back(Lease(client, granules, wish));
    return leases;
  }
  size_t Evicted(const std::vector<quota::LeaseId>& leases) {
    size_t evicted = 0;
    for (const quota::LeaseId lease : leases)
      evicted += Where(lease) == "evicted" ? 1 : 0;
    return evicted;
  }
};

// --- The example of docs/reclaim.md, in granules.

class MachineReclaimExampleTest : public MachineReclaimTest {
 protected:
  MachineReclaimExampleTest()
      : MachineReclaimTest({.granules = 100, .host_granules = 200}) {}
  void SetUp() override {
    SetTenant("chat", {.guarantee = 50});
    SetTenant("batch");
    chat = Parked("chat");
    leases = Leases(chat, 12, 5);
    batch = Parked("batch");
  }
  SimClient* chat = nullptr;
  SimClient* batch = nullptr;
  std::vector<quota::LeaseId> leases;
};

TEST_F(MachineReclaimExampleTest, WhatIsBorrowedGoesToAnotherBorrower) {
  const uint64_t id = Ask(batch, 50, {.wait = seconds(10)});
  Work();
  EXPECT_EQ(Outcome(batch, id), "granted");
  EXPECT_EQ(Evicted(leases), 2u);
}

TEST_F(MachineReclaimExampleTest, NothingIsTakenWhenItWouldNotBeEnough) {
  const uint64_t id = Ask(batch, 60, {.wait = milliseconds(900)});
  RunFor(seconds(1));
  EXPECT_EQ(Outcome(batch, id), "POOL_EXHAUSTED");
  EXPECT_EQ(Evicted(leases), 0u) << "chat keeps its 50";
}

TEST_F(MachineReclaimExampleTest, ABorrowerThatComesBackWaitsInTheQueue) {
  Ask(batch, 50, {.wait = seconds(10)});
  Work();
  EXPECT_TRUE(Enter(batch));
  const uint64_t id = Restore(chat, seconds(3));
  RunFor(seconds(2));
  EXPECT_FALSE(GateOf(batch).paused());
  EXPECT_EQ(Outcome(chat, id), "nothing");
}

TEST_F(MachineReclaimExampleTest, BelowItsGuaranteeItHasTheOtherPaused) {
  Ask(batch, 50, {.wait = seconds(10)});
  Work();
  EXPECT_TRUE(Enter(batch));
  for (const quota::LeaseId lease : leases) {
    if (Where(lease) == "evicted") Release(chat, lease);
  }
  Reclaim("chat", 20);
  Work();
  ASSERT_EQ(Resident("chat"), 30u);
  SimClient* third = Active("batch");
  Lease(third, 20);
  Restore(chat, seconds(10));
  EXPECT_TRUE(GateOf(batch).paused() || GateOf(third).paused());
}

// --- Sessions that may be asked.

TEST_F(MachineReclaimTest, ALeaseGoesWholeForAGuaranteeAndNotForABorrower) {
  SetTenant("a", {.guarantee = 10});
  SetTenant("owner", {.guarantee = 32});
  SetTenant("b");
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 40);
  SimClient* borrower = Parked("b");
  const uint64_t id = Ask(borrower, 30, {.wait = milliseconds(900)});
  RunFor(seconds(1));
  EXPECT_EQ(Outcome(borrower, id), "POOL_EXHAUSTED");
  EXPECT_EQ(Where(lease), "mapped") << "it would fall below its guarantee";
  SimClient* owner = Connect("owner");
  const uint64_t within = Ask(owner, 32, {.wait = seconds(10)});
  Work();
  EXPECT_EQ(Where(lease), "evicted") << "also if that takes it below";
  EXPECT_EQ(Outcome(owner, within), "granted");
}

TEST_F(MachineReclaimTest, TenantsWithinTheirGuaranteeAreNotAsked) {
  SetTenant("a", {.guarantee = 20});
  SetTenant("owner", {.guarantee = 40});
  SetTenant("b");
  SimClient* within = Parked("a");
  const quota::LeaseId safe = Lease(within, 20);
  RunFor(seconds(1));  // it is the longest idle
  SimClient* borrower = Parked("b");
  const quota::LeaseId borrowed = Lease(borrower, 40);
  SimClient* owner = Connect("owner");
  Ask(owner, 40, {.wait = seconds(10)});
  Work();
  EXPECT_EQ(Where(safe), "mapped");
  EXPECT_EQ(Where(borrowed), "evicted");
}

TEST_F(MachineReclaimTest, WhoAsksLosesNothingNorDoesItsGroup) {
  SetTenant("a");
  SetTenant("b");
  SimClient* asking = Parked("a", "ranks");
  const quota::LeaseId own = Lease(asking, 10);
  const quota::LeaseId of_member = Lease(Parked("a", "ranks"), 10);
  RunFor(seconds(1));  // those are the longest idle
  const quota::LeaseId of_sibling = Lease(Parked("a"), 10);
  Lease(Active("b"), 30);
  const uint64_t id = Ask(asking, 10, {.wait = seconds(10)});
  Work();
  EXPECT_EQ(Outcome(asking, id), "granted");
  EXPECT_EQ(Where(own), "mapped");
  EXPECT_EQ(Where(of_member), "mapped");
  EXPECT_EQ(Where(of_sibling), "evicted") << "of its tenant, like everybody's";
}

class MachineLendingTest : public MachineReclaimTest {
 protected:
  static MachineWorld Shape() {
    MachineWorld shape;
    shape.options.planner.lend_parked_guarantees = true;
    return shape;
  }
  MachineLendingTest() : MachineReclaimTest(Shape()) {}
};

TEST_F(MachineLendingTest, ParkedGuaranteesAreLentAndComeBackWithAllSteps) {
  SetTenant("a", {.guarantee = 40});
  SetTenant("b");
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 40);
  SimClient* borrower = Active("b");
  const uint64_t id = Ask(borrower, 40, {.wait = seconds(10)});
  Work();
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(Outcome(borrower, id), "granted");
  const uint64_t restore = Restore(idle, seconds(10));
  EXPECT_TRUE(GateOf(borrower).paused()) << "the owner is within it";
  Park(borrower);
  RunFor(milliseconds(10));
  EXPECT_EQ(Outcome(idle, restore), "restored");
}

// --- In which order.

TEST_F(MachineReclaimTest, WhatNeedsNoCopyGoesFirstThenTheLongestIdle) {
  SetTenant("a");
  SetTenant("b");
  const quota::LeaseId old = Lease(Parked("a"), 16);
  RunFor(seconds(1));
  const quota::LeaseId mid = Lease(Parked("a"), 16);
  RunFor(seconds(1));
  const quota::LeaseId lost = Lease(Parked("a"), 16, {.contents = v1::DISCARD});
  SimClient* borrower = Parked("b");
  Lease(borrower, 16);
  for (const quota::LeaseId next : {lost, old, mid}) {
    EXPECT_EQ(Where(next), "mapped");
    Ask(borrower, 16, {.wait = seconds(10)});
    Work();
    EXPECT_EQ(Where(next), "evicted") << next.value;
  }
}

TEST_F(MachineReclaimTest, OfEqualsTheOneThatExceedsTheNeedLeast) {
  SetTenant("a");
  SetTenant("b");
  SimClient* idle = Parked("a");
  const quota::LeaseId large = Lease(idle, 30);
  const quota::LeaseId fits = Lease(idle, 12);
  const quota::LeaseId small = Lease(idle, 4);
  SimClient* borrower = Parked("b");
  const uint64_t id = Ask(borrower, 28, {.wait = seconds(10)});
  Work();
  EXPECT_EQ(Outcome(borrower, id), "granted");
  EXPECT_EQ(Where(fits), "evicted");
  EXPECT_EQ(Where(large), "mapped");
  EXPECT_EQ(Where(small), "mapped");
}

TEST_F(MachineReclaimTest, ADemandThatNeedsMoreThanSixteenIsServedAllTheSame) {
  SetTenant("a");
  SetTenant("b");
  SimClient* idle = Parked("a");
  const std::vector<quota::LeaseId> leases = Leases(idle, 64, 1);
  SimClient* borrower = Parked("b");
  const uint64_t id = Ask(borrower, 40, {.wait = seconds(10)});
  RunFor(milliseconds(500));
  EXPECT_EQ(Outcome(borrower, id), "granted");
  EXPECT_EQ(Evicted(leases), 40u);
}

// --- Reasons that hold it back.

class MachineResidencyTest : public MachineReclaimTest {
 protected:
  void SetUp() override {
    SetTenant("a", {.min_residency = seconds(30)});
    SetTenant("owner", {.guarantee = 32});
    SetTenant("b");
    lease = Lease(Parked("a"), 40);
  }
  quota::LeaseId lease;
};

TEST_F(MachineResidencyTest, ABorrowerWaitsForIt) {
  SimClient* borrower = Parked("b");
  const uint64_t id = Ask(borrower, 32, {.wait = seconds(60)});
  RunFor(milliseconds(29'900));
  EXPECT_EQ(Where(lease), "mapped");
  RunFor(milliseconds(200));
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(Outcome(borrower, id), "granted");
}

TEST_F(MachineResidencyTest, AGuaranteeWaitsOnlyAsLongAsItsOwnDeadlineAllows) {
  SimClient* owner = Connect("owner");
  const uint64_t id = Ask(owner, 32, {.wait = seconds(10)});
  RunFor(seconds(5));
  EXPECT_EQ(Where(lease), "mapped");
  RunFor(seconds(5));
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachineResidencyTest, OneWithAllTheTimeTakesItWhenItHasHadItsTime) {
  SimClient* owner = Connect("owner");
  const uint64_t id = Ask(owner, 32, {.wait = seconds(600)});
  RunFor(seconds(29));
  EXPECT_EQ(Where(lease), "mapped");
  RunFor(seconds(2));
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachineResidencyTest, OneThatHasHadItsTimeComesFirst) {
  RunFor(seconds(31));
  SimClient* young = Parked("a");
  const quota::LeaseId fresh =
      Lease(young, 20, {.contents = v1::DISCARD});  // needs no copy
  SimClient* owner = Connect("owner");
  const uint64_t id = Ask(owner, 20, {.wait = seconds(10)});
  Work();
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(Where(fresh), "mapped");
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachineReclaimTest, NobodyIsEvictedToMakeUpForWhatIsMissing) {
  SetTenant("a");
  SetTenant("owner", {.guarantee = 32});
  Lease(Connect("a"), 32);
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 20);
  world.device(kPool).SetOutside(10 * kGranule);  // the headroom is 8
  RunFor(seconds(2));
  EXPECT_EQ(InPool().missing_bytes, 2 * kGranule);
  EXPECT_EQ(InPool().broken_bytes, 2 * kGranule);
  RunFor(seconds(10));
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_EQ(Outcome(idle, Ask(idle, 1)), "POOL_EXHAUSTED")
      << "nobody borrows until the sum is whole";
  SimClient* owner = Connect("owner");
  EXPECT_NE(Outcome(owner, Ask(owner, 10)), "POOL_EXHAUSTED")
      << "guarantees are served from what is there";
}

// --- Trims.

class MachineTrimTest : public MachineReclaimTest {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    SetTenant("owner", {.guarantee = 32});
    trimmer = Parked("a");
    cached = Lease(trimmer, 16);
    idle = Lease(Parked("a"), 32);
  }
  // Lacks 16.
  uint64_t AskWithin() {
    return Ask(Connect("owner"), 32, {.wait = seconds(60)});
  }
  // By an operator; how often it was asked by now.
  size_t AskToTrim() {
    Reclaim("a", ReclaimWish{.to = v1::ReclaimRequest::TRIM});
    RunFor(milliseconds(50));
    return Told(trimmer, v1::BrokerMessage::kTrim);
  }
  SimClient* trimmer = nullptr;
  quota::LeaseId cached;
  quota::LeaseId idle;
};

TEST_F(MachineTrimTest, AProgramIsAskedForWhatItSaidWithItsTime) {
  SetTrimmable(trimmer, 16);
  AskWithin();
  ASSERT_EQ(Told(trimmer, v1::BrokerMessage::kTrim), 1u);
  const v1::Trim trim = trimmer->said.back().trim();
  EXPECT_EQ(trim.device(), "sim-1");
  EXPECT_EQ(trim.bytes(), 16 * kGranule);
  EXPECT_EQ(trim.within().nanos(), 20'000'000);
}

TEST_F(MachineTrimTest, WhatIsGivenSparesTheOthersTheirEviction) {
  SetTrimmable(trimmer, 16);
  AskWithin();
  EXPECT_EQ(Where(cached), "mapped");
  EXPECT_EQ(Where(idle), "mapped");
  RunFor(milliseconds(10));
  Release(trimmer, cached);
  Trimmed(trimmer);
  RunFor(milliseconds(100));
  EXPECT_EQ(Where(idle), "mapped");
  EXPECT_EQ(world.clients().back()->granted, 1u);
}

TEST_F(MachineTrimTest, EvictionsFollowWhenItsTimeIsOver) {
  SetTrimmable(trimmer, 16);
  const uint64_t id = AskWithin();
  SimClient* owner = world.clients().back();
  world.Advance(milliseconds(19));
  EXPECT_EQ(Evicted({cached, idle}), 0u);
  EXPECT_EQ(Where(idle), "mapped");
  RunFor(milliseconds(10));
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachineTrimTest, OnesThatGiveNothingPutNothingOff) {
  std::vector<SimClient*> liars;
  for (int i = 0; i < 5; ++i) {
    liars.push_back(Parked("b"));
    Lease(liars.back(), 1);
    SetTrimmable(liars.back(), 1);
  }
  const uint64_t id = AskWithin();
  SimClient* owner = world.clients().back();
  for (int i = 0; i < 20; ++i) {
    for (SimClient* liar : liars) {
      if (liar->trim == 0) continue;
      SetTrimmable(liar, 1);
      Trimmed(liar);
    }
    RunFor(milliseconds(5));
  }
  EXPECT_EQ(Outcome(owner, id), "granted");
  for (const SimClient* liar : liars)
    EXPECT_LE(Told(liar, v1::BrokerMessage::kTrim), 1u);
}

TEST_F(MachineTrimTest, WhoGaveLessIsNotAskedForTenSeconds) {
  SetTrimmable(trimmer, 16);
  EXPECT_EQ(AskToTrim(), 1u);
  Trimmed(trimmer);
  SetTrimmable(trimmer, 16);
  RunFor(seconds(9));
  EXPECT_EQ(AskToTrim(), 1u);
  RunFor(seconds(1));
  EXPECT_EQ(AskToTrim(), 2u) << "it may have changed";
}

TEST_F(MachineTrimTest, WhoGivesTheRestLateIsAskedAgain) {
  Lease(trimmer, 4);
  SetTrimmable(trimmer, 16);
  EXPECT_EQ(AskToTrim(), 1u);
  Trimmed(trimmer);
  Release(trimmer, cached);
  SetTrimmable(trimmer, 4);
  EXPECT_EQ(AskToTrim(), 2u);
}

TEST_F(MachineTrimTest, WhoHasNothingToGiveIsNotAsked) {
  AskWithin();
  EXPECT_EQ(Told(trimmer, v1::BrokerMessage::kTrim), 0u);
  SimClient* zero = Parked("b");
  SetTrimmable(zero, 0);
  RunFor(milliseconds(100));
  EXPECT_EQ(Told(zero, v1::BrokerMessage::kTrim), 0u);
}

TEST_F(MachineTrimTest, HavingAskedTheBrokerForgetsWhatWasSaid) {
  SetTrimmable(trimmer, 16);
  EXPECT_EQ(AskToTrim(), 1u);
  EXPECT_EQ(AskToTrim(), 1u) << "one is unanswered at a time";
  const quota::LeaseId more = Lease(trimmer, 4);
  Release(trimmer, cached);
  Trimmed(trimmer);
  EXPECT_EQ(AskToTrim(), 1u) << "it has not said anything anew";
  SetTrimmable(trimmer, 4);
  EXPECT_EQ(AskToTrim(), 2u);
  EXPECT_EQ(Where(more), "mapped");
}

TEST_F(MachineTrimTest, AnAnswerToAnotherTrimIsNone) {
  SetTrimmable(trimmer, 16);
  AskWithin();
  v1::ClientMessage message;
  message.mutable_trimmed()->set_trim(trimmer->trim + 1);
  Notify(trimmer, message);
  EXPECT_TRUE(Events("trim_answered").empty());
  Trimmed(trimmer, /*busy=*/true);
  ASSERT_EQ(Events("trim_answered").size(), 1u);
  EXPECT_EQ(Events("trim_answered")[0].message(),
            "it could not look after it in time");
}

}  // namespace
}  // namespace gmb::broker
