// Memory that is wanted back for as long as that takes: a pool is made smaller,
// or drains, a limit is lowered, a tenant leaves (docs/reclaim.md).
#include <chrono>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineStandingTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
  }
  // Comes back, works for a moment and parks.
  void Use(SimClient* client) {
    const uint64_t restore = Restore(client);
    Work();
    ASSERT_EQ(Outcome(client, restore), "restored");
    ASSERT_TRUE(Enter(client));
    RunFor(milliseconds(100));
    Park(client);
  }
  // Its limit is that part of the pool.
  void SetShare(const std::string& tenant, double share) {
    world.Do("set share", tenant, [&](Turn& turn) {
      OperatorDesk& desk = world.machine().operators();
      TenantPolicy policy = *desk.GetPolicy(tenant);
      policy.quota.limit = quota::Amount::Fraction(share);
      EXPECT_TRUE(desk.SetTenant(policy, turn).ok());
    });
  }
};

// --- The broker that was told so is gone (docs/restart.md).

class MachineStandingTakeoverTest : public MachineStandingTest {
 protected:
  void SetUp() override {
    MachineStandingTest::SetUp();
    busy = Active("a");
    lease = Lease(busy, 60);
  }
  void ExpectTakenByTheNext() {
    ASSERT_EQ(Where(lease), "mapped") << "it is in use";
    world.Die();
    RunFor(seconds(20));
    ASSERT_EQ(Where(lease), "mapped");
    Park(busy);
    RunFor(milliseconds(100));
    EXPECT_EQ(Where(lease), "evicted");
  }
  SimClient* busy = nullptr;
  quota::LeaseId lease;
};

TEST_F(MachineStandingTakeoverTest, TheNextOneGoesOnWithAShrink) {
  ASSERT_TRUE(Resize(48).ok());
  ExpectTakenByTheNext();
  ASSERT_EQ(InPool().capacity_bytes, 48 * kGranule);
  SimClient* borrower = Parked("b");
  EXPECT_EQ(Outcome(borrower, Ask(borrower, 8)), "granted")
      << "nobody borrows before that";
}

TEST_F(MachineStandingTakeoverTest, TheNextOneGoesOnWithADrain) {
  ASSERT_TRUE(Drain(true).ok());
  ExpectTakenByTheNext();
}

TEST_F(MachineStandingTakeoverTest, TheNextOneEnforcesALoweredLimit) {
  SetTenant("a", {.limit = 20});
  ExpectTakenByTheNext();
  EXPECT_EQ(Of("a").over_limit_bytes, 0u);
}

TEST_F(MachineStandingTakeoverTest, WhatWasWithdrawnBeforeIsNotTaken) {
  ASSERT_TRUE(Resize(48).ok());
  ASSERT_TRUE(Drain(true).ok());
  SetTenant("a", {.limit = 20});
  ASSERT_TRUE(Resize(64).ok());
  ASSERT_TRUE(Drain(false).ok());
  SetTenant("a");
  world.Die();
  Park(busy);
  RunFor(seconds(20));
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_TRUE(state().standing->empty());
}

// --- A pool that drains.

TEST_F(MachineStandingTest, ADrainTakesWhatComesBackToAnEmptyPool) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 8);
  ASSERT_TRUE(Drain(true).ok());
  RunFor(seconds(30));
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Where(lease), "evicted");
    Use(idle);
    RunFor(seconds(2));
  }
  EXPECT_EQ(Where(lease), "evicted");
}

TEST_F(MachineStandingTest, SoDoesTheDrainOfAPoolThatWasEmpty) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 8);
  Reclaim("a");
  Work();
  ASSERT_EQ(Where(lease), "evicted");
  ASSERT_TRUE(Drain(true).ok());
  RunFor(seconds(30));
  Use(idle);
  RunFor(seconds(2));
  EXPECT_EQ(Where(lease), "evicted");
}

// It was taken again in the moment in which its gate opened.
TEST_F(MachineStandingTest, ADrainThatIsNotMetLetsASessionInToo) {
  Lease(Active("b"), 8);  // so that it goes on
  SimClient* idle = Parked("a");
  std::vector<quota::LeaseId> leases;
  for (int i = 0; i < 3; ++i) leases.push_back(Lease(idle, 8));
  ASSERT_TRUE(Drain(true).ok());
  RunFor(seconds(30));
  ASSERT_EQ(Resident("a"), 0u);
  Use(idle);
  RunFor(seconds(2));
  EXPECT_EQ(Resident("a"), 0u);
}

// Its scope was given up meanwhile, say.
TEST_F(MachineStandingTest, OneThatDoesNotComeInIsTakenASecondLater) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 8);
  ASSERT_TRUE(Drain(true).ok());
  RunFor(seconds(1));
  ASSERT_EQ(Where(lease), "evicted");
  const uint64_t restore = Restore(idle);
  Work();
  ASSERT_EQ(Outcome(idle, restore), "restored");
  RunFor(milliseconds(900));
  EXPECT_EQ(Where(lease), "mapped");
  RunFor(milliseconds(200));
  EXPECT_EQ(Where(lease), "evicted");
}

TEST_F(MachineStandingTest, BackInServiceNothingIsTakenAnyMore) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 8);
  ASSERT_TRUE(Drain(true).ok());
  RunFor(seconds(1));
  ASSERT_EQ(Where(lease), "evicted");
  ASSERT_TRUE(Drain(false).ok());
  Use(idle);
  RunFor(seconds(20));
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_TRUE(state().standing->empty());
}

TEST_F(MachineStandingTest, ADrainOfNothingSleeps) {
  ASSERT_TRUE(Drain(true).ok());
  RunFor(seconds(60));
  int turns = 0;
  const quota::Instant end = world.now() + seconds(60);
  for (; world.machine().NextDue(world.now()) < end; ++turns) {
    world.AdvanceToDue();
    RunDevice();
    ASSERT_LT(turns, 200);
  }
  EXPECT_LE(turns, 70) << "the free figure is read once a second";
}

// --- A tenant that leaves.

TEST_F(MachineStandingTest, ADeletionTakesWhatComesBackMeanwhile) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 8);
  Depart("a", seconds(60));
  RunFor(seconds(10));
  ASSERT_EQ(Where(lease), "evicted");
  Use(idle);
  RunFor(seconds(2));
  EXPECT_EQ(Where(lease), "evicted");
}

// --- A pool made smaller.

class MachineHeldUpShrinkTest : public MachineStandingTest {
 protected:
  // Hard bytes and a guarantee that nobody uses keep the pool at 60.
  void SetUp() override {
    MachineStandingTest::SetUp();
    SetTenant("owner", {.guarantee = 40});
    holder = Connect("b");
    hard = Lease(holder, 20);
    idle = Parked("a");
  }
  SimClient* holder = nullptr;
  SimClient* idle = nullptr;
  quota::LeaseId hard;
};

TEST_F(MachineHeldUpShrinkTest, WhatCannotMakeItSmallerStays) {
  const quota::LeaseId lease = Lease(idle, 20);
  const auto change = Resize(48);
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(change->state(), v1::Change::PENDING);
  RunFor(seconds(1));
  EXPECT_EQ(InPool().capacity_bytes, 60 * kGranule);
  EXPECT_EQ(Where(lease), "mapped");
  Release(holder, hard);
  RunFor(seconds(1));
  EXPECT_EQ(InPool().capacity_bytes, 48 * kGranule);
  EXPECT_EQ(Where(lease), "mapped") << "there is room for it";
}

TEST_F(MachineHeldUpShrinkTest, OfTheRestNoMoreIsTakenThanThat) {
  std::vector<quota::LeaseId> leases;
  for (int i = 0; i < 11; ++i) leases.push_back(Lease(idle, 4));
  ASSERT_TRUE(Resize(44).ok());  // 64 are held, 60 are promised
  RunFor(seconds(1));
  EXPECT_EQ(Resident("a"), 40u);
  EXPECT_EQ(InPool().capacity_bytes, 60 * kGranule);
}

TEST_F(MachineHeldUpShrinkTest, ItGoesOnWhenAPromiseIsGone) {
  const quota::LeaseId large = Lease(idle, 20);
  const quota::LeaseId small = Lease(idle, 10);
  ASSERT_TRUE(Resize(40).ok());
  RunFor(seconds(30));
  ASSERT_EQ(Where(large), "mapped");
  ASSERT_EQ(Where(small), "mapped");
  ASSERT_TRUE(Delete("owner").ok());
  RunFor(seconds(1));
  EXPECT_EQ(Where(large), "mapped");
  EXPECT_EQ(Where(small), "evicted");
  EXPECT_EQ(InPool().capacity_bytes, 40 * kGranule);
}

// --- Limits that are shares of a pool.

TEST_F(MachineStandingTest, ParkedMemoryAboveAShareThatShrankIsTaken) {
  SetShare("a", 0.5);
  SimClient* idle = Parked("a");
  for (int i = 0; i < 4; ++i) Lease(idle, 8);
  const auto change = Resize(48);
  ASSERT_TRUE(change.ok());
  Work();
  EXPECT_EQ(Of("a").limit_bytes, 24 * kGranule);
  EXPECT_EQ(Of("a").over_limit_bytes, 0u);
  EXPECT_EQ(Resident("a"), 24u) << "no more than it takes";
}

TEST_F(MachineStandingTest, AShareThatGrewAgainTakesNothing) {
  SetShare("a", 0.5);
  SimClient* busy = Active("a");
  const quota::LeaseId lease = Lease(busy, 32);
  ASSERT_TRUE(Resize(48).ok());
  RunFor(seconds(1));
  ASSERT_TRUE(Resize(64).ok());
  Park(busy);
  RunFor(seconds(1));
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_TRUE(state().standing->empty());
}

}  // namespace
}  // namespace gmb::broker
