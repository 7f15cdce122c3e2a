// Groups of which a member's gate is off: nobody of them is lent, and nobody
// counts on it (docs/protocol.md, "Groups").
#include <chrono>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;

class MachineGroupsTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("owner", {.guarantee = 40});  // of 64
  }
  [[nodiscard]] bool IsMember(SimClient* client) const {
    return !SessionOf(client).group->empty();
  }
};

TEST_F(MachineGroupsTest, NobodyJoinsOffWhereGuaranteesRestOnTheOthers) {
  SimClient* one = Parked("a", "ranks");
  const quota::LeaseId lease = Lease(one, 40);
  SimClient* two = Connect("a");
  EXPECT_EQ(Outcome(two, SetGate(two, false, "ranks")), "OVERCOMMITTED");
  EXPECT_FALSE(IsMember(two));
  EXPECT_FALSE(IsHard(lease));
  SimClient* owner = Connect("owner");
  const uint64_t id = Ask(owner, 40, {.wait = seconds(60)});
  Work();
  EXPECT_EQ(Outcome(owner, id), "granted");
  EXPECT_EQ(Outcome(two, SetGate(two, false, "ranks")), "BAD_STATE")
      << "what is away cannot be hard";
  EXPECT_FALSE(IsMember(two));
}

TEST_F(MachineGroupsTest, NorDoesAMemberTurnOff) {
  SimClient* one = Parked("a", "ranks");
  const quota::LeaseId of_one = Lease(one, 20);
  SimClient* two = Active("a", "ranks");
  const quota::LeaseId of_two = Lease(two, 20);
  EXPECT_EQ(Outcome(two, SetGate(two, false, "ranks")), "OVERCOMMITTED");
  EXPECT_TRUE(SessionOf(two).gate->on());
  EXPECT_FALSE(IsHard(of_one));
  EXPECT_FALSE(IsHard(of_two));
  EXPECT_EQ(Outcome(two, SetGate(two, false)), "gate set")
      << "by itself it may";
  EXPECT_FALSE(IsHard(of_one));
  EXPECT_TRUE(IsHard(of_two));
}

TEST_F(MachineGroupsTest, WhoIsOnJoinsOneThatIsHeldAsHard) {
  SimClient* off = Connect("a");
  ASSERT_EQ(Outcome(off, SetGate(off, false, "ranks")), "gate set");
  SimClient* one = Parked("a");
  const quota::LeaseId first = Lease(one, 20);
  const quota::LeaseId second = Lease(one, 20);
  EXPECT_EQ(Outcome(one, SetGate(one, true, "ranks")), "OVERCOMMITTED");
  EXPECT_FALSE(IsMember(one));
  EXPECT_FALSE(IsHard(first));
  Release(one, second);
  EXPECT_EQ(Outcome(one, SetGate(one, true, "ranks")), "gate set");
  EXPECT_TRUE(IsHard(first));
  EXPECT_EQ(InHostPool("a").reserved_bytes, 0u);
}

TEST_F(MachineGroupsTest, WhatMembersWaitForIsSoftWhenTheLastOneIsOn) {
  SimClient* one = Parked("a", "ranks");
  SimClient* two = Connect("a");
  ASSERT_EQ(Outcome(two, SetGate(two, false, "ranks")), "gate set");
  SetTenant("b");
  SimClient* other = Active("b");
  const quota::LeaseId blocking = Lease(other, 50);
  const uint64_t id = Ask(one, 20, {.wait = seconds(60)});
  ASSERT_EQ(Outcome(one, id), "waits");
  ASSERT_EQ(Outcome(two, SetGate(two, true, "ranks")), "gate set");
  Release(other, blocking);
  Work();
  ASSERT_EQ(Outcome(one, id), "granted");
  EXPECT_FALSE(IsHard(*SessionOf(one).leases->begin()));
}

// A request of a member that is on waits as a hard one, and 44 are free.
class MachineWaitingMemberTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("c");
    SetTenant("owner", {.guarantee = 32});  // of 64
    Lease(Connect("c"), 20);
    two_ = Connect("a");
    ASSERT_EQ(Outcome(two_, SetGate(two_, false, "ranks")), "gate set");
    one_ = Parked("a", "ranks");
    waiting_ = Ask(one_, 20, {.wait = seconds(60)});
    RunFor(seconds(1));
    ASSERT_EQ(Outcome(one_, waiting_), "waits");
  }
  SimClient* one_ = nullptr;
  SimClient* two_ = nullptr;
  uint64_t waiting_ = 0;
};

TEST_F(MachineWaitingMemberTest, IsServedWhenTheOneThatWasOffEnds) {
  End(two_);
  Work();
  EXPECT_EQ(Outcome(one_, waiting_), "granted");
}

TEST_F(MachineWaitingMemberTest, OrLeavesTheGroup) {
  ASSERT_EQ(Outcome(two_, SetGate(two_, false)), "gate set");
  Work();
  EXPECT_EQ(Outcome(one_, waiting_), "granted");
}

TEST_F(MachineWaitingMemberTest, OrTurnsOn) {
  Park(two_);
  ASSERT_EQ(Outcome(two_, SetGate(two_, true, "ranks")), "gate set");
  Work();
  EXPECT_EQ(Outcome(one_, waiting_), "granted");
}

TEST_F(MachineWaitingMemberTest, AnotherOneThatIsOffKeepsItWaiting) {
  SimClient* three = Connect("a");
  ASSERT_EQ(Outcome(three, SetGate(three, false, "ranks")), "gate set");
  End(two_);
  Work();
  EXPECT_EQ(Outcome(one_, waiting_), "waits");
}

}  // namespace
}  // namespace gmb::broker
