// Acquires that wait as hard ones, and could be soft ones by now
// (docs/quota.md, "Hard or soft?").
#include <chrono>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Beside the guarantee of a, b and c may have 44 that are hard.
class MachineSoftRequestsTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a", {.guarantee = 20, .limit = 40});
    SetTenant("b");
    SetTenant("c");
    a = Connect("a");
    b = Connect("b");
    c = Connect("c");
  }
  SimClient* a = nullptr;
  SimClient* b = nullptr;
  SimClient* c = nullptr;
};

TEST_F(MachineSoftRequestsTest, OneThatWaitsIsSoftOnceItsSessionsGateIsOn) {
  Lease(b, 10);
  const uint64_t id = Ask(c, 40, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(c, id), "waits");
  Park(c);
  EXPECT_EQ(Outcome(c, SetGate(c, true)), "gate set");
  RunDevice();
  EXPECT_EQ(Outcome(c, id), "granted");
  EXPECT_EQ(Waiting(), 0u);
}

// The other one asks for as much, and has borrowed as little.
TEST_F(MachineSoftRequestsTest, OneThatBecomesSoftKeepsItsPlace) {
  SetTenant("d");
  SimClient* d = Connect("d");
  const quota::LeaseId lease = Lease(b, 44);
  const uint64_t older = Ask(c, 40, {.wait = seconds(60)});
  const uint64_t younger = Ask(d, 40, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(c, older), "waits");
  Park(c);
  EXPECT_EQ(Outcome(c, SetGate(c, true)), "gate set");
  EXPECT_EQ(Waiting(), 2u);
  Release(b, lease);
  RunDevice();
  EXPECT_EQ(Outcome(c, older), "granted");
  EXPECT_EQ(Outcome(d, younger), "waits");
}

TEST_F(MachineSoftRequestsTest,
       OneThatItsSessionsSoftLeasesLetInIsGrantedOnce) {
  Lease(b, 10);
  const quota::LeaseId held = Lease(c, 20);
  const uint64_t id = Ask(c, 20, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(c, id), "waits");
  Park(c);
  EXPECT_EQ(Outcome(c, SetGate(c, true)), "gate set");
  RunDevice();
  EXPECT_EQ(Outcome(c, id), "granted");
  EXPECT_EQ(AnswerTo(c, id).grant().lease_id(), held.value + 1)
      << "no grant before it was given back";
}

TEST_F(MachineSoftRequestsTest, OneIsJudgedAsASoftOneWhenThereIsRoom) {
  Lease(b, 10);
  SetTenant("c", {.host_limit = 1});
  Park(c);
  EXPECT_EQ(Outcome(c, SetGate(c, true)), "gate set");
  const uint64_t id = Ask(c, 40, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(c, id), "waits") << "without room it is hard";
  SetTenant("c");
  RunDevice();
  EXPECT_EQ(Outcome(c, id), "granted");
}

// The engine would refuse it before it hears that it is a soft one.
TEST_F(MachineSoftRequestsTest, OneWhoseTimeIsOverIsNotRefusedAsAHardOne) {
  Lease(b, 10);
  const uint64_t id = Ask(c, 40, {.wait = seconds(1)});
  EXPECT_EQ(Outcome(c, id), "waits");
  Park(c);
  world.LetPass(seconds(1));
  EXPECT_EQ(Outcome(c, SetGate(c, true)), "gate set");
  RunFor(milliseconds(1));
  EXPECT_EQ(Outcome(c, id), "granted");
}

// The owner gives up at the moment at which the gate is turned on.
TEST_F(MachineSoftRequestsTest, OneThatIsLetInAtThatMomentIsASoftLease) {
  SetTenant("a");
  SetTenant("owner", {.guarantee = 32});
  Lease(Active("b"), 40);
  SimClient* owner = Connect("owner");
  const uint64_t own = Ask(owner, 32, {.wait = milliseconds(100)});
  const uint64_t id = Ask(a, 10, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(a, id), "waits");
  world.LetPass(milliseconds(100));
  Park(a);
  EXPECT_EQ(Outcome(a, SetGate(a, true)), "gate set");
  RunDevice();
  EXPECT_EQ(Outcome(owner, own), "POOL_EXHAUSTED");
  ASSERT_EQ(Outcome(a, id), "granted");
  EXPECT_FALSE(IsHard({AnswerTo(a, id).grant().lease_id()}));
}

// Of 20 granules of the host pool 12 are kept for another's contents, so that a
// request of 20 waits as a hard one: 12 can be borrowed so, and 32 are free.
class MachineRoomTest : public MachineFixture {
 protected:
  MachineRoomTest() : MachineFixture({.host_granules = 20}) {}
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    SetTenant("c");
    SetTenant("owner", {.guarantee = 32});
    holder = Connect("c");
    held = Lease(holder, 20);
  }
  uint64_t Waits(SimClient* client) {
    const uint64_t id = Ask(client, 20, {.wait = seconds(60)});
    RunFor(seconds(1));
    EXPECT_EQ(Outcome(client, id), "waits");
    return id;
  }
  SimClient* holder = nullptr;
  quota::LeaseId held;
};

TEST_F(MachineRoomTest, WhatWaitsForRoomInTheHostPoolIsServedWhenThereIsSome) {
  SimClient* other = Parked("b");
  const quota::LeaseId lease = Lease(other, 12);
  ASSERT_FALSE(IsHard(lease));
  SimClient* waiter = Parked("a");
  const uint64_t id = Waits(waiter);
  Release(other, lease);
  Work();
  EXPECT_EQ(Outcome(waiter, id), "granted");
}

TEST_F(MachineRoomTest, AllThatWaitAreLookedAtInSeveralTurns) {
  SimClient* other = Parked("b");
  const quota::LeaseId lease = Lease(other, 12);
  SimClient* without = Connect("b");  // without a gate it stays a hard one
  for (int i = 0; i < 300; ++i) Ask(without, 13, {.wait = seconds(60)});
  SimClient* waiter = Parked("a");
  const uint64_t id = Ask(waiter, 20, {.wait = seconds(60)});
  ASSERT_EQ(Outcome(waiter, id), "waits");
  Release(other, lease);
  RunFor(milliseconds(100));
  EXPECT_EQ(Outcome(waiter, id), "granted");
}

TEST_F(MachineRoomTest, WhatBecomesSoftIsNotRefusedForHandlesThatAreGone) {
  const uint64_t handles =
      state().PoolAt(kPool).slabs->HandlesFor(20 * kGranule);
  SetTenant("a", {.max_handles = static_cast<uint32_t>(handles)});
  SimClient* other = Parked("b");
  const quota::LeaseId lease = Lease(other, 12);
  Lease(Active("b"), 28, {.contents = v1::DISCARD});
  SimClient* waiter = Parked("a");
  const uint64_t id = Ask(waiter, 20, {.wait = seconds(60)});
  ASSERT_EQ(Outcome(waiter, id), "waits");
  Lease(Connect("a"), 1);
  Release(other, lease);
  Work();
  ASSERT_EQ(state().pending->size(), 1u);
  EXPECT_TRUE(state().pending->begin()->second.soft) << "there is room for it";
  EXPECT_EQ(Outcome(waiter, id), "waits");
}

TEST_F(MachineRoomTest, AtItsDeadlineOneIsJudgedOnceMoreBeforeItIsRefused) {
  SimClient* other = Parked("b");
  const quota::LeaseId lease = Lease(other, 12);
  SimClient* waiter = Parked("a");
  const uint64_t id = Ask(waiter, 20, {.wait = seconds(1)});
  RunFor(milliseconds(900));
  EXPECT_EQ(Outcome(waiter, id), "waits");
  world.LetPass(milliseconds(100));
  Release(other, lease);
  Work();
  EXPECT_EQ(Outcome(waiter, id), "granted");
}

// The second one finds no room, and is next as a hard one.
TEST_F(MachineRoomTest, OfTwoThatWaitForTheSameRoomOneKeepsItsPlace) {
  SetTenant("d");
  SetTenant("e");
  SimClient* other = Parked("b");
  const quota::LeaseId lease = Lease(other, 12);
  SimClient* a = Parked("a");
  SimClient* d = Parked("d");
  SimClient* without = Connect("e");
  const Wish wish{.wait = seconds(60)};
  const uint64_t first = Ask(a, 20, wish);
  const uint64_t second = Ask(d, 20, wish);
  const uint64_t third = Ask(without, 20, wish);
  EXPECT_EQ(Waiting(), 3u);
  Release(other, lease);
  Work();
  EXPECT_EQ(Outcome(a, first), "granted");
  EXPECT_EQ(Outcome(d, second), "waits");
  Release(holder, held);
  Work();
  EXPECT_EQ(Outcome(d, second), "granted");
  EXPECT_EQ(Outcome(without, third), "waits");
}

class MachineMoreRoomTest : public MachineFixture {
 protected:
  MachineMoreRoomTest() : MachineFixture({.host_granules = 40}) {}
};

// Of the host pool 20 granules are left, so that the owner's request is a hard
// one, and 32 when the lease that is away is released.
TEST_F(MachineMoreRoomTest, WhatIsKeptForOneThatBecomesSoftNobodyElseHas) {
  for (const char* tenant : {"a", "b", "c"}) SetTenant(tenant);
  SetTenant("owner", {.guarantee = 32});
  Lease(Connect("c"), 32);
  SimClient* parked = Parked("b");
  const quota::LeaseId lease = Lease(parked, 12);
  Lease(Active("b"), 8);
  SimClient* owner = Parked("owner");
  const uint64_t own = Ask(owner, 32, {.wait = seconds(60)});
  Work();
  ASSERT_EQ(Where(lease), "evicted");  // 24 are free
  SimClient* other = Parked("a");
  const uint64_t id = Ask(other, 20, {.wait = seconds(60)});
  ASSERT_EQ(Outcome(other, id), "waits");
  Release(parked, lease);
  Work();
  EXPECT_EQ(Outcome(owner, own), "waits");
  EXPECT_EQ(Outcome(other, id), "waits");
}

}  // namespace
}  // namespace gmb::broker
