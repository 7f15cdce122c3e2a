// Acquires beside a keeper that is silent: it has what is destroyed, so that a
// slab of a size that is not ready cannot be made until it goes on.
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineSilentKeeperTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    client = Connect("a");
    idle = Parked("a");
    evicted = Lease(idle, 1, {.share_as = "x"});
    Reclaim("a");
    Work();
    RunFor(seconds(1));
    world.SilenceKeeper(true);
    // All of the float, which is not filled again.
    SimClient* other = Connect("b");
    while (Parts().float_bytes > 0) Lease(other, 1);
    RunFor(seconds(1));
  }
  uint64_t AskForWhatIsNotReady(quota::Nanoseconds wait) {
    const uint64_t id = Ask(client, 1, {.wait = wait});
    RunDevice();
    return id;
  }
  SimClient* client = nullptr;
  SimClient* idle = nullptr;
  quota::LeaseId evicted;  // of that one, shared as x
};

TEST_F(MachineSilentKeeperTest, OneThatWaitsIsGrantedOnceTheKeeperGoesOn) {
  const uint64_t id = AskForWhatIsNotReady(seconds(60));
  EXPECT_EQ(Outcome(client, id), "waits");
  RunFor(seconds(20));
  EXPECT_EQ(Outcome(client, id), "waits");
  world.SilenceKeeper(false);
  RunFor(seconds(2));
  EXPECT_EQ(Outcome(client, id), "granted");
  EXPECT_EQ(Told(client, v1::BrokerMessage::kWaiting), 1u);
}

// Or that a keeper silent for a moment cost nobody a second.
TEST_F(MachineSilentKeeperTest, AtFirstItIsAskedForAgainSoon) {
  const uint64_t id = AskForWhatIsNotReady(seconds(60));
  world.SilenceKeeper(false);
  RunFor(milliseconds(50));
  EXPECT_EQ(Outcome(client, id), "granted");
}

TEST_F(MachineSilentKeeperTest, OneThatDoesNotWaitIsToldWhatIsAmiss) {
  const uint64_t id = AskForWhatIsNotReady(seconds(0));
  EXPECT_EQ(Outcome(client, id), "POOL_EXHAUSTED");
  EXPECT_NE(AnswerTo(client, id).error().message().find("keeper"),
            std::string::npos);
}

TEST_F(MachineSilentKeeperTest, AtItsDeadlineOneThatWaitsIsToldTheSame) {
  const uint64_t id = AskForWhatIsNotReady(milliseconds(2500));
  RunFor(milliseconds(2400));
  EXPECT_EQ(Outcome(client, id), "waits");
  RunFor(milliseconds(200));
  EXPECT_EQ(Outcome(client, id), "POOL_EXHAUSTED");
  EXPECT_NE(AnswerTo(client, id).error().message().find("keeper"),
            std::string::npos);
}

// However long that was.
TEST_F(MachineSilentKeeperTest, ItIsAskedForAgainAsLongAsItWaits) {
  const uint64_t id = AskForWhatIsNotReady(seconds(3600));
  RunFor(seconds(600));
  EXPECT_EQ(Outcome(client, id), "waits");
  world.SilenceKeeper(false);
  RunFor(seconds(2));
  EXPECT_EQ(Outcome(client, id), "granted");
}

// As a hard one it would wait on: the guarantee is not used, and leaves nothing.
TEST_F(MachineSilentKeeperTest, ItIsJudgedAnewWhenItIsAskedForAgain) {
  const uint64_t id = AskForWhatIsNotReady(seconds(60));
  Park(client);
  EXPECT_EQ(Outcome(client, SetGate(client, true)), "gate set");
  SetTenant("owner", {.guarantee = 64 - Resident("b")});
  world.SilenceKeeper(false);
  RunFor(seconds(2));
  EXPECT_EQ(Outcome(client, id), "granted");
}

TEST_F(MachineSilentKeeperTest, OfManySomeAreAskedForAtATime) {
  world.CheckEvery(100);
  for (int i = 0; i < 3; ++i) {
    SimClient* one = Connect("a");
    for (int k = 0; k < 100; ++k) Ask(one, 1, {.wait = seconds(60)});
  }
  RunFor(seconds(3));
  const size_t before = Events("create_failed").size();
  RunFor(seconds(2));
  // 160 a second; else each would be asked for once a second.
  EXPECT_LT(Events("create_failed").size() - before, 400u);
  world.SilenceKeeper(false);
  RunFor(seconds(4));
  EXPECT_TRUE(state().put_off->empty());
}

TEST_F(MachineSilentKeeperTest, WhatIsReadyIsGrantedMeanwhile) {
  const uint64_t id = AskForWhatIsNotReady(seconds(60));
  EXPECT_NE(Lease(client, 2).value, 0u);
  EXPECT_EQ(Outcome(client, id), "waits");
}

TEST_F(MachineSilentKeeperTest, ACancelEndsIt) {
  const uint64_t id = AskForWhatIsNotReady(seconds(60));
  Cancel(client, id);
  EXPECT_EQ(Outcome(client, id), "CANCELLED_BY_CLIENT");
  world.SilenceKeeper(false);
  RunFor(seconds(5));
  EXPECT_TRUE(SessionOf(client).leases->empty()) << "for nobody";
}

TEST_F(MachineSilentKeeperTest, ATenantThatDepartsWaitsForNothing) {
  const uint64_t id = AskForWhatIsNotReady(seconds(60));
  Depart("a", seconds(60));
  EXPECT_EQ(Outcome(client, id), "DRAINING");
  EXPECT_TRUE(state().put_off->empty());
}

TEST_F(MachineSilentKeeperTest, ASessionThatEndsLeavesNothing) {
  AskForWhatIsNotReady(seconds(60));
  ASSERT_EQ(state().put_off->size(), 1u);
  End(client);
  EXPECT_TRUE(state().put_off->empty());
  EXPECT_TRUE(state().pending->empty());
}

TEST_F(MachineSilentKeeperTest, AtADeviceThatIsLostItIsRefused) {
  const uint64_t id = AskForWhatIsNotReady(seconds(60));
  world.device(kPool).Lose();
  RunFor(seconds(20));
  EXPECT_EQ(Outcome(client, id), "DEVICE_LOST");
}

// --- Leases that should come back.

TEST_F(MachineSilentKeeperTest, ARestoreIsDoneOnceTheKeeperGoesOn) {
  const uint64_t id = Restore(idle, seconds(60));
  RunFor(seconds(20));
  EXPECT_EQ(Outcome(idle, id), "nothing");
  EXPECT_LE(Events("restore_failed").size(), 26u) << "at last one a second";
  world.SilenceKeeper(false);
  RunFor(seconds(2));
  EXPECT_EQ(Outcome(idle, id), "restored");
  EXPECT_EQ(Where(evicted), "mapped");
}

TEST_F(MachineSilentKeeperTest, ARestoreIsRefusedAtItsDeadline) {
  const uint64_t id = Restore(idle, milliseconds(2500));
  RunFor(milliseconds(2400));
  EXPECT_EQ(Outcome(idle, id), "nothing");
  RunFor(milliseconds(200));
  EXPECT_EQ(Outcome(idle, id), "POOL_EXHAUSTED");
  const uint64_t again = Restore(idle, seconds(60));
  world.SilenceKeeper(false);
  RunFor(seconds(2));
  EXPECT_EQ(Outcome(idle, again), "restored");
}

TEST_F(MachineSilentKeeperTest, OneThatAttachesWaitsForTheKeeper) {
  const uint64_t id = Attach(client, "x", seconds(60));
  RunFor(seconds(20));
  EXPECT_EQ(Outcome(client, id), "waits");
  world.SilenceKeeper(false);
  RunFor(seconds(2));
  EXPECT_EQ(Outcome(client, id), "attached");
}

TEST_F(MachineSilentKeeperTest, ALeaseThatIsPutOffMayEnd) {
  Restore(idle, seconds(60));
  RunDevice();
  ASSERT_EQ(state().restores_put_off->size(), 1u);
  End(idle);
  RunFor(seconds(2));
  EXPECT_EQ(Where(evicted), "gone");
  EXPECT_TRUE(state().restores_put_off->empty());
}

}  // namespace
}  // namespace gmb::broker
