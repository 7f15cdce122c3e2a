// Gates that are turned on and off: what is soft, and who moves together
// (docs/gate.md; docs/protocol.md, "On and off").
#include <chrono>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineGatesTest : public MachineFixture {
 protected:
  explicit MachineGatesTest(uint64_t host_granules = 128)
      : MachineFixture({.host_granules = host_granules}) {}
  void SetUp() override {
    SetTenant("a");
    SetTenant("owner", {.guarantee = 40});
  }
  // Turned off as a client does it: its standing scope first.
  uint64_t TurnOff(SimClient* client) {
    EXPECT_TRUE(Enter(client));
    return SetGate(client, false);
  }
};

TEST_F(MachineGatesTest, NothingIsTakenBeforeTheBrokerHasAgreed) {
  SimClient* client = Connect("a");
  const quota::LeaseId lease = Lease(client, 10);
  Park(client);  // the page says so; nobody has told the broker
  Reclaim("a");
  RunFor(seconds(1));
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_FALSE(IsClosed(client));
  EXPECT_EQ(Outcome(client, SetGate(client, true)), "gate set");
  Reclaim("a");
  Work();
  EXPECT_EQ(Where(lease), "evicted");
}

TEST_F(MachineGatesTest, LeasesBecomeSoftThatCanBeTaken) {
  SimClient* client = Connect("a");
  const quota::LeaseId kept = Lease(client, 4);
  const quota::LeaseId lost = Lease(client, 4, {.contents = v1::DISCARD});
  const quota::LeaseId stays = Lease(client, 4, {.contents = v1::RESIDENT});
  for (const quota::LeaseId lease : {kept, lost, stays})
    EXPECT_TRUE(IsHard(lease));
  Park(client);
  SetGate(client, true);
  EXPECT_FALSE(IsHard(kept));
  EXPECT_FALSE(IsHard(lost));
  EXPECT_TRUE(IsHard(stays));
  EXPECT_EQ(InHostPool("a").reserved_bytes, 4 * kGranule)
      << "room is for what is to be kept";
  EXPECT_FALSE(IsHard(Lease(client, 4))) << "so are later ones";
}

TEST_F(MachineGatesTest, SaidTwiceItIsTheSame) {
  SimClient* client = Parked("a");
  EXPECT_EQ(Outcome(client, SetGate(client, true)), "gate set");
  EXPECT_EQ(Events("gate_on").size(), 1u);
  EXPECT_EQ(Outcome(client, TurnOff(client)), "gate set");
  EXPECT_EQ(Outcome(client, SetGate(client, false)), "gate set");
  EXPECT_EQ(Events("gate_off").size(), 1u);
}

TEST_F(MachineGatesTest, TurnedOffAllIsHardAndItsRoomIsFree) {
  SimClient* client = Parked("a");
  const quota::LeaseId lease = Lease(client, 10);
  EXPECT_EQ(Outcome(client, TurnOff(client)), "gate set");
  EXPECT_TRUE(IsHard(lease));
  EXPECT_EQ(InHostPool("a").reserved_bytes, 0u);
  Park(client);
  Reclaim("a");
  RunFor(seconds(1));
  EXPECT_EQ(Where(lease), "mapped");
}

// All or nothing: the second lease would not fit as a hard one.
TEST_F(MachineGatesTest, OneThatGuaranteesRestOnStaysOn) {
  SimClient* client = Parked("a");
  const quota::LeaseId one = Lease(client, 20);
  const quota::LeaseId two = Lease(client, 20);
  const uint64_t id = TurnOff(client);
  EXPECT_EQ(Outcome(client, id), "OVERCOMMITTED");
  EXPECT_EQ(AnswerTo(client, id).error().detail().deficit_bytes(),
            16 * kGranule);
  EXPECT_FALSE(IsHard(one));
  EXPECT_FALSE(IsHard(two));
  Park(client);
  SimClient* owner = Connect("owner");
  const uint64_t asked = Ask(owner, 40, {.wait = seconds(10)});
  Work();
  EXPECT_EQ(Outcome(owner, asked), "granted") << "they can still be taken";
}

TEST_F(MachineGatesTest, AClosedOneCannotBeTurnedOff) {
  SimClient* client = Parked("a");
  Lease(client, 10);
  Reclaim("a");
  EXPECT_TRUE(IsClosed(client));
  EXPECT_EQ(Outcome(client, SetGate(client, false)), "BAD_STATE");
  Work();
  EXPECT_EQ(Outcome(client, SetGate(client, false)), "BAD_STATE")
      << "memory that is away cannot be promised to stay";
  Restore(client);
  Work();
  EXPECT_EQ(Outcome(client, TurnOff(client)), "gate set");
}

TEST_F(MachineGatesTest, SoftOnesMayBorrowWhatAGuaranteeDoesNotUse) {
  SimClient* hard = Connect("a");
  const uint64_t id = Ask(hard, 30);
  EXPECT_EQ(Outcome(hard, id), "OVERCOMMITTED");
  EXPECT_NE(AnswerTo(hard, id).error().message().find("turn the gate on"),
            std::string::npos);
  SimClient* soft = Parked("a");
  EXPECT_FALSE(IsHard(Lease(soft, 60)));
}

TEST_F(MachineGatesTest, OneThatWaitedAsAHardOneIsSoftIfTheGateIsOnByThen) {
  SimClient* holder = Connect("owner");
  const quota::LeaseId blocking = Lease(holder, 60);
  SimClient* client = Connect("a");
  const uint64_t id = Ask(client, 20, {.wait = seconds(60)});
  Park(client);
  SetGate(client, true);
  Release(holder, blocking);
  RunDevice();
  ASSERT_EQ(Outcome(client, id), "granted");
  EXPECT_FALSE(IsHard({AnswerTo(client, id).grant().lease_id()}));
}

TEST_F(MachineGatesTest, OneThatWaitedAsASoftOneIsJudgedAnewWithoutAGate) {
  SimClient* holder = Parked("owner");
  const quota::LeaseId blocking = Lease(holder, 40);
  ASSERT_TRUE(Enter(holder));
  SimClient* client = Active("a");
  const uint64_t id = Ask(client, 40, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(client, id), "waits");
  EXPECT_EQ(Outcome(client, SetGate(client, false)), "gate set");
  Release(holder, blocking);
  RunDevice();
  EXPECT_EQ(Outcome(client, id), "OVERCOMMITTED")
      << "as a hard one it would stand on the owner's guarantee";
}

// --- Groups.

TEST_F(MachineGatesTest, AGroupIsClosedAllOrNone) {
  SimClient* one = Parked("a", "ranks");
  SimClient* two = Active("a", "ranks");
  const quota::LeaseId of_one = Lease(one, 10);
  const quota::LeaseId of_two = Lease(two, 10);
  Reclaim("a", 10);
  RunFor(milliseconds(100));
  EXPECT_FALSE(IsClosed(one)) << "the other one is at work";
  EXPECT_EQ(Where(of_one), "mapped");
  Park(two);
  Reclaim("a", 10);
  EXPECT_TRUE(IsClosed(one));
  EXPECT_TRUE(IsClosed(two));
  Work();
  EXPECT_EQ((Where(of_one) == "evicted") + (Where(of_two) == "evicted"), 1)
      << "the leases that nobody needs stay";
}

TEST_F(MachineGatesTest, AGroupComesBackTogetherWhoeverAsks) {
  SimClient* one = Parked("a", "ranks");
  SimClient* two = Parked("a", "ranks");
  const quota::LeaseId of_one = Lease(one, 10);
  const quota::LeaseId of_two = Lease(two, 10);
  Reclaim("a");
  Work();
  ASSERT_EQ(Where(of_one), "evicted");
  const uint64_t id = Restore(two);
  RunDevice();
  EXPECT_EQ(Where(of_one), "restoring");
  EXPECT_EQ(Where(of_two), "restoring");
  RunCopies();
  Follow(two);
  EXPECT_TRUE(IsClosed(one));
  EXPECT_TRUE(IsClosed(two)) << "not all is back";
  Follow(one);
  EXPECT_FALSE(IsClosed(one));
  EXPECT_FALSE(IsClosed(two));
  EXPECT_EQ(Outcome(two, id), "restored");
}

TEST_F(MachineGatesTest, ASessionIsInOneGroupAndLeavesItWithItsGate) {
  SimClient* one = Parked("a", "ranks");
  EXPECT_EQ(Outcome(one, SetGate(one, true, "other")), "BAD_STATE");
  EXPECT_EQ(Outcome(one, SetGate(one, true, "ranks")), "gate set");
  EXPECT_EQ(Outcome(one, TurnOff(one)), "gate set");
  EXPECT_EQ(Outcome(one, SetGate(one, true, "other")), "gate set");
  SimClient* two = Connect("a");
  const uint64_t id = SetGate(two, true, std::string(64, 'g'));
  EXPECT_EQ(Outcome(two, id), "BAD_REQUEST");
  EXPECT_EQ(AnswerTo(two, id).error().detail().field(), "group");
  EXPECT_FALSE(SessionOf(two).gate->on()) << "refused as a whole";
}

TEST_F(MachineGatesTest, WhoLeavesAGroupFreesTheOthers) {
  SimClient* one = Parked("a", "ranks");
  SimClient* two = Active("a", "ranks");
  const quota::LeaseId lease = Lease(one, 10);
  EXPECT_EQ(Outcome(two, SetGate(two, false)), "gate set");
  Reclaim("a");
  Work();
  EXPECT_EQ(Where(lease), "evicted") << "nobody binds it any more";
}

TEST_F(MachineGatesTest, AMembersEndLetsTheOthersIn) {
  SimClient* one = Parked("a", "ranks");
  SimClient* two = Parked("a", "ranks");
  const quota::LeaseId of_one = Lease(one, 4);
  Lease(two, 40);
  Reclaim("a");
  Work();
  SetTenant("b");
  SimClient* other = Active("b");
  Lease(other, 50);
  const uint64_t id = Restore(one, seconds(60));
  EXPECT_EQ(Outcome(one, id), "nothing") << "44 are not there";
  End(two);
  Work();
  EXPECT_EQ(Outcome(one, id), "restored") << "4 are";
  EXPECT_EQ(Where(of_one), "mapped");
}

// --- Room in the host pool.

class MachineLittleRoomTest : public MachineGatesTest {
 protected:
  MachineLittleRoomTest() : MachineGatesTest(10) {}
};

TEST_F(MachineLittleRoomTest, WhatGetsNoRoomStaysHard) {
  SimClient* client = Connect("a");
  const quota::LeaseId one = Lease(client, 8);
  const quota::LeaseId two = Lease(client, 8);
  Park(client);
  EXPECT_EQ(Outcome(client, SetGate(client, true)), "gate set");
  EXPECT_NE(IsHard(one), IsHard(two)) << "one has room";
  const auto answer = Reclaim("a");
  RunFor(seconds(1));
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((**answer)->reclaimed_bytes(), 8 * kGranule);
  ASSERT_EQ((**answer)->findings_size(), 1);
  EXPECT_EQ((**answer)->findings(0),
            "1 lease of 16.0 MiB: no room in the host pool for its contents");
}

TEST_F(MachineLittleRoomTest, ATenantHasItsOwnLimitThere) {
  SetTenant("a", {.host_limit = 4});
  SimClient* client = Parked("a");
  EXPECT_TRUE(IsHard(Lease(client, 5)));
  EXPECT_FALSE(IsHard(Lease(client, 4)));
  EXPECT_TRUE(IsHard(Lease(client, 1)));
  const auto answer = Reclaim("a");
  RunFor(seconds(1));
  ASSERT_TRUE(answer->has_value());
  ASSERT_EQ((**answer)->findings_size(), 1);
  EXPECT_EQ((**answer)->findings(0),
            "2 leases of 12.0 MiB: no room in the host pool for its contents");
  SimClient* owner = Parked("owner");
  EXPECT_FALSE(IsHard(Lease(owner, 6))) << "it is not the others' limit";
}

TEST_F(MachineLittleRoomTest, RoomStaysWithAnEvictedLeaseUntilItEnds) {
  SimClient* client = Parked("a");
  const quota::LeaseId lease = Lease(client, 8);
  EXPECT_EQ(InHostPool("a").reserved_bytes, 8 * kGranule);
  EXPECT_EQ(InHostPool("a").true_bytes, 0u);
  Reclaim("a");
  Work();
  EXPECT_EQ(InHostPool("a").reserved_bytes, 8 * kGranule);
  EXPECT_EQ(InHostPool("a").true_bytes, 8 * kGranule);
  SetTenant("a", {.host_limit = 1});
  EXPECT_EQ(InHostPool("a").true_bytes, 8 * kGranule)
      << "what it has stays, above the limit or not";
  Release(client, lease);
  EXPECT_EQ(InHostPool("a").reserved_bytes, 0u);
}

// Without room at its grant it is hard; a demand that could take it looks
// whether there is some by now.
TEST_F(MachineLittleRoomTest, RoomThatComesFreeLaterServes) {
  SimClient* client = Parked("a");
  const quota::LeaseId first = Lease(client, 8);
  const quota::LeaseId second = Lease(client, 8);
  ASSERT_TRUE(IsHard(second));
  Release(client, first);
  Reclaim("a");
  Work();
  EXPECT_EQ(Where(second), "evicted");
}

}  // namespace
}  // namespace gmb::broker
