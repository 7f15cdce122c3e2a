// Operators' commands to the broker: reclaim, drain, stop (docs/reclaim.md,
// docs/cli.md).
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineOperatorsTest : public MachineFixture {
 protected:
  explicit MachineOperatorsTest(const MachineWorld& shape = {})
      : MachineFixture(shape) {}
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    idle = Parked("a");
  }
  static uint64_t Got(const std::shared_ptr<Reclaimed>& answer) {
    return (**answer)->reclaimed_bytes() / kGranule;
  }
  static uint64_t Lacks(const std::shared_ptr<Reclaimed>& answer) {
    return (**answer)->lacking_bytes() / kGranule;
  }
  static std::string Finding(const std::shared_ptr<Reclaimed>& answer,
                             int index = 0) {
    return (**answer)->findings_size() <= index ? ""
                                                : (**answer)->findings(index);
  }
  std::string Refused(const std::string& tenant, const ReclaimWish& wish) {
    const auto answer = Reclaim(tenant, wish);
    return answer->has_value() ? ReasonOf((*answer)->status()) : "it waits";
  }
  SimClient* idle = nullptr;
};

// --- Reclaim.

TEST_F(MachineOperatorsTest, AReclaimTakesWhatIsAskedForAndSaysSo) {
  for (int i = 0; i < 5; ++i) Lease(idle, 4);
  const auto answer = Reclaim("a", 10);
  EXPECT_FALSE(answer->has_value()) << "it is on its way";
  Work();
  RunFor(milliseconds(100));
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ(Got(answer), 10u);
  EXPECT_EQ(Lacks(answer), 0u);
  EXPECT_EQ(Resident("a"), 8u) << "whole leases, and no more than it takes";
}

TEST_F(MachineOperatorsTest, WithoutBytesItTakesWhatCanBeHad) {
  Lease(idle, 4);
  SimClient* busy = Active("a");
  const quota::LeaseId stays = Lease(busy, 6);
  const auto answer = Reclaim("a");
  Work();
  RunFor(milliseconds(100));
  ASSERT_TRUE(answer->has_value()) << "nothing more can be taken now";
  EXPECT_EQ(Got(answer), 4u);
  EXPECT_EQ(Lacks(answer), 0u) << "no bytes were named";
  EXPECT_EQ(Finding(answer), "1 lease of 12.0 MiB: active");
  EXPECT_EQ(Where(stays), "mapped");
  EXPECT_FALSE(GateOf(busy).paused()) << "an operator pauses nobody";
}

TEST_F(MachineOperatorsTest, OneThatGetsLessThanItNamedSaysWhatLacks) {
  Lease(idle, 4);
  const auto answer = Reclaim("a", 10);
  Work();
  RunFor(milliseconds(100));
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ(Got(answer), 4u);
  EXPECT_EQ(Lacks(answer), 6u);
}

TEST_F(MachineOperatorsTest, NeitherGuaranteesNorResidencyHoldItBack) {
  SetTenant("a", {.guarantee = 20, .min_residency = hours(1)});
  const quota::LeaseId lease = Lease(idle, 10);
  const auto answer = Reclaim("a");
  Work();
  RunFor(milliseconds(50));
  EXPECT_EQ(Where(lease), "evicted");
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ(Got(answer), 10u);
}

TEST_F(MachineOperatorsTest, OtherTenantsAreNotAsked) {
  SimClient* other = Parked("b");
  const quota::LeaseId lease = Lease(other, 10);
  const auto answer = Reclaim("a", 10);
  RunFor(seconds(1));
  ASSERT_TRUE(answer->has_value()) << "it has nothing";
  EXPECT_EQ(Got(answer), 0u);
  EXPECT_EQ(Where(lease), "mapped");
}

TEST_F(MachineOperatorsTest, ToTrimEvictsNothing) {
  const quota::LeaseId cached = Lease(idle, 4);
  const quota::LeaseId used = Lease(idle, 4);
  SetTrimmable(idle, 4);
  const auto answer = Reclaim("a", {.to = v1::ReclaimRequest::TRIM});
  ASSERT_EQ(Told(idle, v1::BrokerMessage::kTrim), 1u);
  EXPECT_FALSE(answer->has_value()) << "the program has its time";
  Release(idle, cached);
  Trimmed(idle);
  RunFor(milliseconds(100));
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ(Got(answer), 4u);
  EXPECT_EQ(Where(used), "mapped");
}

// Of those without a gate a plan sees one lease each.
TEST_F(MachineOperatorsTest, ToTrimAsksAsManyAsAreNeeded) {
  SimClient* silent = Connect("a");
  SimClient* other = Connect("a");
  for (SimClient* client : {silent, other}) {
    Lease(client, 1);
    Lease(client, 20);
    SetTrimmable(client, 20);
  }
  const auto answer =
      Reclaim("a", {.granules = 40, .to = v1::ReclaimRequest::TRIM});
  EXPECT_EQ(Told(silent, v1::BrokerMessage::kTrim), 1u);
  EXPECT_EQ(Told(other, v1::BrokerMessage::kTrim), 1u);
}

TEST_F(MachineOperatorsTest, ToEvictAsksThemToTrimAsWell) {
  SimClient* silent = Connect("a");
  SimClient* other = Connect("a");
  for (SimClient* client : {silent, other}) {
    Lease(client, 1);
    Lease(client, 20);
    SetTrimmable(client, 20);
  }
  const auto answer = Reclaim("a", 40);
  EXPECT_EQ(Told(silent, v1::BrokerMessage::kTrim), 1u);
  EXPECT_EQ(Told(other, v1::BrokerMessage::kTrim), 1u);
}

// A program that is in a scope answers when it has left it.
TEST_F(MachineOperatorsTest, ToTrimWaitsForTheAnswerOrItsDeadline) {
  for (const bool answers : {true, false}) {
    const quota::LeaseId cached = Lease(idle, 4);
    SetTrimmable(idle, 4);
    const auto answer =
        Reclaim("a", {.to = v1::ReclaimRequest::TRIM, .wait = seconds(3)});
    RunFor(milliseconds(2900));
    ASSERT_FALSE(answer->has_value());
    if (answers) {
      Release(idle, cached);
      Trimmed(idle);
    }
    RunFor(milliseconds(answers ? 50 : 200));
    ASSERT_TRUE(answer->has_value());
    EXPECT_EQ(Got(answer), answers ? 4u : 0u);
  }
}

TEST_F(MachineOperatorsTest, ItEndsAtItsDeadlineTenSecondsUnlessSaid) {
  for (const quota::Nanoseconds wait : {seconds(3), seconds(0)}) {
    SimClient* liar = Parked("a");
    stubborn.insert(liar);
    Lease(liar, 8);
    const auto answer = Reclaim("a", {.granules = 8, .wait = wait});
    const quota::Nanoseconds time = wait.count() == 0 ? seconds(10) : wait;
    RunFor(time - milliseconds(1000));
    EXPECT_FALSE(answer->has_value() && Got(answer) > 0);
    RunFor(milliseconds(1100));
    ASSERT_TRUE(answer->has_value());
    EXPECT_EQ(Got(answer), 0u);
    EXPECT_EQ(Lacks(answer), 8u);
    End(liar);
    Work();
  }
}

TEST_F(MachineOperatorsTest, TwoAtOnceAreEachAnswered) {
  Lease(idle, 8);
  const auto one = Reclaim("a", 8);
  const auto two = Reclaim("a");
  Work();
  RunFor(seconds(1));
  ASSERT_TRUE(one->has_value());
  ASSERT_TRUE(two->has_value());
  EXPECT_EQ(Got(one), 8u);
  EXPECT_EQ(Got(two), 8u);
}

TEST_F(MachineOperatorsTest, WhatCannotBeMeantIsRefusedAndDoesNothing) {
  const quota::LeaseId lease = Lease(idle, 4);
  EXPECT_EQ(Refused("no", {}), "NO_SUCH_TENANT");
  EXPECT_EQ(Refused("a", {.device = "no"}), "NO_SUCH_DEVICE");
  EXPECT_EQ(Refused("a", {.to = static_cast<v1::ReclaimRequest::Step>(9)}),
            "BAD_REQUEST");
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_TRUE(Events("reclaim_asked").empty());
}

TEST_F(MachineOperatorsTest, AnUnknownStepIsEvict) {
  const quota::LeaseId lease = Lease(idle, 4);
  Reclaim("a", {.to = v1::ReclaimRequest::STEP_UNSPECIFIED});
  Work();
  EXPECT_EQ(Where(lease), "evicted");
}

// --- Draining a pool.

TEST_F(MachineOperatorsTest, ADrainingPoolGrantsNothingAndIsEmptied) {
  SetTenant("a", {.guarantee = 29});
  const quota::LeaseId parked = Lease(idle, 20);
  SimClient* busy = Active("a");
  const quota::LeaseId used = Lease(busy, 10);
  SimClient* waiter = Connect("b");
  const uint64_t waiting = Ask(waiter, 34, {.wait = seconds(60)});
  RunDevice();
  ASSERT_EQ(Outcome(waiter, waiting), "granted");
  const uint64_t next = Ask(waiter, 1, {.wait = seconds(60)});
  const auto leased = Drain(true);
  ASSERT_TRUE(leased.ok());
  EXPECT_EQ(*leased, 64 * kGranule);
  EXPECT_EQ(Outcome(waiter, next), "DRAINING");
  EXPECT_EQ(Outcome(idle, Ask(idle, 1, {.wait = seconds(60)})), "DRAINING");
  Work();
  RunFor(milliseconds(100));
  EXPECT_EQ(Where(parked), "evicted") << "guarantees do not protect";
  EXPECT_EQ(Where(used), "mapped");
  Park(busy);
  RunFor(milliseconds(100));
  EXPECT_EQ(Where(used), "evicted");
  EXPECT_EQ(Events("pool_draining").size(), 1u);
}

TEST_F(MachineOperatorsTest, BackInServiceItGrantsAndTakesNothingMore) {
  SimClient* busy = Active("a");
  const quota::LeaseId used = Lease(busy, 10);
  ASSERT_TRUE(Drain(true).ok());
  ASSERT_TRUE(Drain(false).ok());
  Park(busy);
  RunFor(seconds(1));
  EXPECT_EQ(Where(used), "mapped");
  EXPECT_EQ(Outcome(idle, Ask(idle, 4)), "granted");
  EXPECT_EQ(Events("pool_in_service").size(), 1u);
}

TEST_F(MachineOperatorsTest, OnlyADeviceThatThereIsIsDrained) {
  EXPECT_EQ(ReasonOf(Drain(true, "no").status()), "NO_SUCH_DEVICE");
}

// A restart brings it back, and nothing else.
TEST_F(MachineOperatorsTest, AStoppingBrokersPoolsStayDrained) {
  world.Do("stop", [&](Turn& turn) {
    world.machine().operators().BeginDrain(absl::Seconds(30), turn);
  });
  EXPECT_EQ(ReasonOf(Drain(false).status()), "BAD_STATE");
  EXPECT_TRUE(InPool().draining);
}

// --- A broker that stops.

TEST_F(MachineOperatorsTest, WhoeverWaitsIsAnsweredWhenTheBrokerStops) {
  stubborn.insert(idle);
  Lease(idle, 8);
  const auto reclaim = Reclaim("a", 8);
  const auto departure = Depart("a", seconds(60));
  EXPECT_FALSE(reclaim->has_value());
  EXPECT_FALSE(departure->has_value());
  world.Do("refuse", [&](Turn& turn) {
    world.machine().operators().RefuseWaiting(turn);
  });
  ASSERT_TRUE(reclaim->has_value());
  ASSERT_TRUE(departure->has_value());
  EXPECT_EQ(ReasonOf((*reclaim)->status()), "DRAINING");
  EXPECT_EQ(ReasonOf(**departure), "DRAINING");
  EXPECT_EQ(Refused("a", {}), "DRAINING");
  EXPECT_EQ(ReasonOf(**Depart("b", seconds(1))), "DRAINING");
  EXPECT_EQ(ReasonOf(DropLease("a", "x").status()), "DRAINING");
}

class MachineTwoDevicesTest : public MachineOperatorsTest {
 protected:
  MachineTwoDevicesTest() : MachineOperatorsTest({.pools = 2}) {}
};

TEST_F(MachineTwoDevicesTest, AReclaimAndADrainAreOfOneDevice) {
  const quota::LeaseId one = Lease(idle, 4, {.device = "sim-1"});
  const quota::LeaseId two = Lease(idle, 4, {.device = "sim-2"});
  EXPECT_EQ(Refused("a", {}), "NO_SUCH_DEVICE") << "there are several";
  Reclaim("a", {.device = "sim-2"});
  Work();
  EXPECT_EQ(Where(one), "mapped");
  EXPECT_EQ(Where(two), "evicted");
  ASSERT_TRUE(Drain(true, "sim-2").ok());
  SimClient* client = Connect("b");
  EXPECT_EQ(Outcome(client, Ask(client, 1, {.device = "sim-2"})), "DRAINING");
  EXPECT_NE(Lease(client, 1, {.device = "sim-1"}).value, 0u)
      << "another device serves";
}

}  // namespace
}  // namespace gmb::broker
