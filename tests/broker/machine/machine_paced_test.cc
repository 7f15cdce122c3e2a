// Slabs of leases that come back are made while others of them are filled
// (docs/eviction.md, "Restoring").
#include <chrono>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachinePacedTest : public MachineFixture {
 protected:
  static constexpr uint64_t kLeases = 12;
  static constexpr uint64_t kAhead = 3;  // leases made and not yet filled
  static MachineWorld Shape() {
    MachineWorld shape;
    shape.options.fill_ahead_bytes = kAhead * kGranule;
    return shape;
  }
  MachinePacedTest() : MachineFixture(Shape()) {}

  // Leases of one granule are granted back, and none of their slabs is there:
  // those of `other`, which had all of the pool, have to be destroyed for them.
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    client = Parked("a");
    for (uint64_t i = 0; i < kLeases; ++i) {
      leases.push_back(Lease(client, 1));
      Write(client, leases.back(), 1000 + i);
    }
    Reclaim("a");
    Work();
    other = Connect("b");
    const quota::LeaseId all = Lease(other, 64);
    restore = Restore(client, seconds(60));
    ASSERT_EQ(world.copies_in, 0u);
    Release(other, all);
  }

  SimClient* client = nullptr;
  SimClient* other = nullptr;
  std::vector<quota::LeaseId> leases;
  uint64_t restore = 0;
};

TEST_F(MachinePacedTest, TheFirstAreFilledBeforeTheLastAreMade) {
  RunDevice();
  EXPECT_EQ(world.copies_in, kAhead);
  for (uint64_t filled = 1; filled <= kLeases - kAhead; ++filled) {
    world.StepCopy(/*out=*/false, /*fail=*/false);
    RunDevice();
    EXPECT_EQ(world.copies_in, kAhead + filled);
  }
  // The client maps the first of them meanwhile.
  EXPECT_EQ(client->moves.size(), kLeases);
  Work();
  EXPECT_EQ(Outcome(client, restore), "restored");
  for (uint64_t i = 0; i < kLeases; ++i)
    EXPECT_EQ(Read(client, leases[i]), std::vector<uint64_t>{1000 + i});
}

TEST_F(MachinePacedTest, ACopyThatFailsLetsTheNextBeMade) {
  RunDevice();
  world.StepCopy(/*out=*/false, /*fail=*/true);
  RunDevice();
  EXPECT_EQ(world.copies_in, kAhead + 1);
  Work();
  for (const quota::LeaseId lease : leases)
    EXPECT_NE(Where(lease), "restoring") << "it goes on";
}

// Its slabs are made of what those that are held back destroy.
TEST_F(MachinePacedTest, ARequestOfAnotherWaitsForNoCopy) {
  SetTenant("c");
  SimClient* third = Connect("c");
  const uint64_t id = Ask(third, 64 - kLeases, {.wait = seconds(60)});
  RunDevice();
  EXPECT_EQ(world.copies_in, kLeases) << "nothing is held back any more";
  EXPECT_EQ(Outcome(third, id), "granted");
  Work();
  EXPECT_EQ(Outcome(client, restore), "restored");
}

TEST_F(MachinePacedTest, NothingIsLeftOfAProcessThatEndsMeanwhile) {
  RunDevice();
  End(client);
  RunDevice();
  RunCopies();
  RunDevice();
  EXPECT_TRUE(state().leases->empty());
  EXPECT_EQ(Parts().granted_bytes, 0u);
  EXPECT_EQ(state().PoolAt(kPool).device->jobs, 0u);
}

// Their own slabs wait for leases of `b`, and those of `a` have to be made.
class MachinePacedOthersTest : public MachinePacedTest {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    client = Parked("a");
    other = Parked("b");
  }
  void LeaseSome(SimClient* whose, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i)
      Write(whose, Lease(whose, 1), 1000 * i);
  }
};

TEST_F(MachinePacedOthersTest, LeasesThatNeedNoCreateHoldNobodyBack) {
  LeaseSome(client, 1);
  Reclaim("a");
  Work();
  LeaseSome(other, 2 * kAhead);
  Ask(Connect("b"), 1);  // the device is busy
  Reclaim("b");
  Follow(other);
  RunCopies();
  ASSERT_GE(Parts().returned_bytes, kAhead * kGranule);
  restore = Restore(other, seconds(60));
  RunDevice();
  ASSERT_EQ(world.copies_in, 2 * kAhead);
  Restore(client, seconds(60));
  RunDevice();
  EXPECT_EQ(world.copies_in, 2 * kAhead + 1);
}

// The lease of `client` comes back while memory that `other` gave back is due to
// be destroyed, which would hold its copies up.
class MachineCopyInTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    client = Parked("a");
    Write(client, Lease(client, 1), 1000);
    Reclaim("a");
    Work();
    SimClient* const other = Connect("b");
    Release(other, Lease(other, 4));
    ASSERT_EQ(Parts().returned_bytes, 4 * kGranule);
    world.Advance(milliseconds(4800));
    Restore(client);
    RunDevice();
    ASSERT_EQ(world.copies_in, 1u);
    world.Advance(milliseconds(400));
    RunDevice();
    ASSERT_EQ(Parts().returned_bytes, 4 * kGranule) << "it waits for the copy";
  }

  SimClient* client = nullptr;
};

TEST_F(MachineCopyInTest, WhatIsDueIsDestroyedAfterTheLastCopy) {
  Work();
  EXPECT_EQ(Parts().returned_bytes, 0u);
}

TEST_F(MachineCopyInTest, ACopyThatTakesLongHoldsNothingBack) {
  world.Advance(milliseconds(800));
  RunDevice();
  EXPECT_EQ(Parts().returned_bytes, 0u);
  EXPECT_EQ(world.copies_in, 1u);
}

// As after one copy: the process that ends is given up by its copies.
TEST_F(MachineCopyInTest, ACopyThatFailsOrIsOfAnEndedProcessLetsItGoOn) {
  End(client);
  RunCopies();
  RunDevice();
  EXPECT_EQ(state().PoolAt(kPool).copies_in->leases, 0u);
  EXPECT_EQ(Parts().returned_bytes, 0u);
}

}  // namespace
}  // namespace gmb::broker
