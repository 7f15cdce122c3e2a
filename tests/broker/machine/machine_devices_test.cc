// Pools and what their devices say: slabs, failures, bytes that do not come
// back (docs/devices.md, docs/decisions.md 3 to 5 and 12).
#include <chrono>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineDevicesTest : public MachineFixture {
 protected:
  explicit MachineDevicesTest(const MachineWorld& shape = {})
      : MachineFixture(shape) {}
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    RunFor(seconds(1));  // its slabs are made
    a = Connect("a");
    b = Connect("b");
  }
  static std::set<SlabId> SlabsOf(const SimClient* client,
                                  quota::LeaseId lease) {
    std::set<SlabId> ids;
    for (const SimSlab& slab : client->leases.at(lease.value).slabs)
      ids.insert(slab.id);
    return ids;
  }
  // Released, and kept mapped: the client lies.
  SimLease ReleaseAndKeep(SimClient* client, quota::LeaseId lease) {
    const SimLease held = client->leases.at(lease.value);
    client->leases.erase(lease.value);
    v1::ClientMessage message;
    message.mutable_release()->set_lease_id(lease.value);
    EXPECT_EQ(Outcome(client, Send(client, message)), "released");
    return held;
  }
  absl::Status Add(const std::string& uuid, uint64_t target,
                   uint64_t baseline) {
    NewPool pool;
    pool.info = {device::DeviceKind::kVmm, uuid, "x", baseline, kGranule};
    pool.baseline_bytes = baseline;
    pool.target_bytes = target;
    pool.slabs = SlabPool::DefaultOptions(64 * kGranule, kGranule);
    absl::Status status;
    world.Do("add pool", [&](Turn& turn) {
      status = world.machine().operators().AddPool(pool, turn).status();
    });
    return status;
  }
  SimClient* a = nullptr;
  SimClient* b = nullptr;
};

TEST_F(MachineDevicesTest, APoolHasOneDeviceAndNoMoreThanThatHasFree) {
  EXPECT_TRUE(absl::IsAlreadyExists(Add("sim-1", kGranule, 9 * kGranule)));
  const absl::Status large = Add("x", 10 * kGranule, 9 * kGranule);
  EXPECT_TRUE(absl::IsResourceExhausted(large));
  EXPECT_NE(large.message().find("lower --pool"), std::string::npos);
  EXPECT_TRUE(absl::IsInvalidArgument(Add("x", kGranule - 1, 9 * kGranule)));
  EXPECT_EQ(Connect("a")->welcome.devices.size(), 1u);
}

// --- Slabs.

TEST_F(MachineDevicesTest, ThePoolIsMadeAheadOfNeed) {
  EXPECT_EQ(Parts().ready_bytes + Parts().float_bytes, 64 * kGranule);
  EXPECT_GT(Parts().ready_bytes, 50 * kGranule);
  EXPECT_EQ(Outcome(a, Ask(a, 8)), "granted") << "without a step of the device";
}

TEST_F(MachineDevicesTest, SlabsThatComeBackServeTheirTenantForFiveSeconds) {
  const quota::LeaseId first = Lease(a, 8);
  const std::set<SlabId> slabs = SlabsOf(a, first);
  Release(a, first);
  EXPECT_EQ(Parts().returned_bytes, 8 * kGranule);
  EXPECT_EQ(InPool().leased_bytes, 0u) << "for quotas they are free";
  const quota::LeaseId second = Lease(a, 8);
  EXPECT_EQ(SlabsOf(a, second), slabs);
  Release(a, second);
  RunFor(seconds(6));
  EXPECT_EQ(Parts().returned_bytes, 0u);
  const quota::LeaseId third = Lease(a, 8);
  for (const SlabId slab : SlabsOf(a, third))
    EXPECT_FALSE(slabs.contains(slab));
}

// Slabs that `a` gave back are due to be destroyed.
class MachineMappingTest : public MachineDevicesTest {
 protected:
  static constexpr quota::Nanoseconds kTime = milliseconds(2);
  static MachineWorld Shape() {
    MachineWorld shape;
    shape.options.mapping_time = kTime;
    return shape;
  }
  MachineMappingTest() : MachineDevicesTest(Shape()) {}
  void SetUp() override {
    MachineDevicesTest::SetUp();
    // Some are ready from here on.
    Release(b, Lease(b, 30));
    RunFor(seconds(6));
    Release(a, Lease(a, 4));
    world.Advance(seconds(5) - milliseconds(1));
    RunDevice();
    ASSERT_EQ(Parts().returned_bytes, 4 * kGranule);
  }
  void Pass(quota::Nanoseconds time) {
    world.Advance(time);
    RunDevice();
  }
};

TEST_F(MachineMappingTest, TheDeviceIsLeftToAClientThatMapsItsLease) {
  ASSERT_EQ(Outcome(b, Ask(b, 2)), "granted") << "without a step of the device";
  const quota::Instant mapped = world.now() + kTime;
  while (world.now() < mapped) {
    RunDevice();
    EXPECT_EQ(Parts().returned_bytes, 4 * kGranule);
    world.AdvanceToDue();
  }
  EXPECT_EQ(world.now(), mapped);
  RunDevice();
  EXPECT_EQ(Parts().returned_bytes, 0u);
}

TEST_F(MachineMappingTest, OneLeaseAfterTheOtherDoesNotHoldTheDeviceForLong) {
  quota::Nanoseconds passed{0};
  while (passed < Mappings::kMost) {
    ASSERT_EQ(Parts().returned_bytes, 4 * kGranule);
    ASSERT_EQ(Outcome(b, Ask(b, 2)), "granted");
    Pass(milliseconds(1));
    passed += milliseconds(1);
  }
  EXPECT_EQ(Parts().returned_bytes, 0u);
}

TEST_F(MachineDevicesTest, ASlabNeverChangesTenant) {
  std::set<SlabId> of_a;
  for (const uint64_t granules : {40, 7, 13}) {
    const quota::LeaseId lease = Lease(a, granules);
    of_a.merge(SlabsOf(a, lease));
    Release(a, lease);
  }
  const quota::LeaseId all = Lease(b, 64);
  for (const SlabId slab : SlabsOf(b, all)) EXPECT_FALSE(of_a.contains(slab));
  // Nor does fresh memory hold anything.
  for (const uint64_t granule : Read(b, all)) EXPECT_EQ(granule, 0u);
}

// --- Failures.

TEST_F(MachineDevicesTest, ADeviceErrorIsAnAnswerToTheRequestThatMetIt) {
  const uint64_t id = Ask(a, 61);  // 61 of which some are to be made
  ASSERT_EQ(Outcome(a, id), "nothing");
  world.device(kPool).FailNextCreate(absl::InternalError("the bus"));
  RunDevice();
  EXPECT_EQ(Outcome(a, id), "DEVICE_ERROR");
  EXPECT_NE(AnswerTo(a, id).error().message().find("the bus"),
            std::string::npos);
  EXPECT_EQ(InPool().leased_bytes, 0u);
  EXPECT_EQ(Events("create_failed").size(), 1u);
  EXPECT_NE(Lease(a, 61).value, 0u);
}

TEST_F(MachineDevicesTest, WhatOthersHaveTakenIsNamedInTheRefusal) {
  Lease(b, 40);
  ReleaseAndKeep(b, {b->leases.begin()->first});
  world.device(kPool).SetOutside(18 * kGranule);
  const uint64_t id = Ask(a, 40, {.wait = seconds(1)});
  RunFor(seconds(2));
  EXPECT_EQ(Outcome(a, id), "POOL_EXHAUSTED");
  EXPECT_TRUE(AnswerTo(a, id).error().detail().has_retry_after());
}

TEST_F(MachineDevicesTest, ALostDeviceRefusesAndServesNoMore) {
  const quota::LeaseId held = Lease(a, 60);
  const uint64_t waiting = Ask(b, 10, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(b, waiting), "waits");
  world.device(kPool).Lose();
  Release(a, held);
  RunFor(seconds(2));
  EXPECT_EQ(Outcome(b, waiting), "DEVICE_LOST");
  EXPECT_EQ(Outcome(a, Ask(a, 1)), "DEVICE_LOST");
  EXPECT_EQ(Events("device_lost").size(), 1u);
  EXPECT_EQ(ReasonOf(Drain(false).status()), "BAD_STATE");
  const SimClient* late = Connect("a");
  ASSERT_EQ(late->welcome.warnings.size(), 1u);
  EXPECT_NE(late->welcome.warnings[0].find("restart the broker"),
            std::string::npos);
}

class MachineOtherDeviceTest : public MachineDevicesTest {
 protected:
  MachineOtherDeviceTest() : MachineDevicesTest({.pools = 2}) {}
};

TEST_F(MachineOtherDeviceTest, AnotherDeviceServesOn) {
  world.device(kPool).Lose();
  RunFor(seconds(2));
  const uint64_t id = Ask(a, 1, {.device = "sim-1"});
  RunDevice();
  EXPECT_EQ(Outcome(a, id), "DEVICE_LOST");
  EXPECT_NE(Lease(a, 1, {.device = "sim-2"}).value, 0u);
}

// --- Bytes that do not come back.

TEST_F(MachineDevicesTest, WhatAClientKeepsIsItsTenantsDebtUntilItIsBack) {
  SetTenant("a", {.limit = 20});
  const SimLease kept = ReleaseAndKeep(a, Lease(a, 16));
  RunFor(seconds(10));
  EXPECT_EQ(Of("a").unreturned_bytes, 16 * kGranule);
  EXPECT_EQ(Of("a").leased_bytes, 0u);
  EXPECT_EQ(Parts().unreturned_bytes, 16 * kGranule);
  EXPECT_EQ(Outcome(a, Ask(a, 8)), "TENANT_LIMIT") << "it counts against it";
  RunFor(seconds(3600));
  EXPECT_EQ(Of("a").unreturned_bytes, 16 * kGranule)
      << "a debt is never written off";
  world.HoldSlabs(kept, false);
  RunFor(seconds(2));
  EXPECT_EQ(Of("a").unreturned_bytes, 0u);
  EXPECT_NE(Lease(a, 20).value, 0u);
}

TEST_F(MachineDevicesTest, ADebtOutlivesTheSession) {
  const SimLease kept = ReleaseAndKeep(a, Lease(a, 16));
  End(a);
  RunFor(seconds(10));
  EXPECT_EQ(Of("a").unreturned_bytes, 16 * kGranule);
  world.HoldSlabs(kept, false);
  RunFor(seconds(2));
  EXPECT_EQ(Of("a").unreturned_bytes, 0u);
}

TEST_F(MachineDevicesTest, EachTenantOwesItsOwnAndEachChangeIsToldOnce) {
  const SimLease of_a = ReleaseAndKeep(a, Lease(a, 16));
  const SimLease of_b = ReleaseAndKeep(b, Lease(b, 4));
  RunFor(seconds(10));
  EXPECT_EQ(Of("a").unreturned_bytes, 16 * kGranule);
  EXPECT_EQ(Of("b").unreturned_bytes, 4 * kGranule);
  EXPECT_EQ(Parts().unreturned_bytes, 20 * kGranule);
  const size_t told = Events("unreturned_changed").size();
  RunFor(seconds(600));
  EXPECT_EQ(Events("unreturned_changed").size(), told) << "nothing has changed";
  world.HoldSlabs(of_a, false);
  RunFor(seconds(10));
  EXPECT_EQ(Of("a").unreturned_bytes, 0u);
  EXPECT_EQ(Of("b").unreturned_bytes, 4 * kGranule) << "another's debt";
  EXPECT_EQ(Events("unreturned_changed").size(), told + 1);
  world.HoldSlabs(of_b, false);
  RunFor(seconds(10));
  EXPECT_EQ(Parts().unreturned_bytes, 0u);
  EXPECT_EQ(Events("unreturned_changed").size(), told + 2);
  EXPECT_EQ(Events("missing_changed").size(), 0u) << "nobody is outside";
}

TEST_F(MachineDevicesTest, DebtsAreOwedToTheNextBroker) {
  SetTenant("a", {.limit = 20});
  SetTenant("gone", {.limit = 20});
  SimClient* leaver = Connect("gone");
  const SimLease orphaned = ReleaseAndKeep(leaver, Lease(leaver, 4));
  const SimLease kept = ReleaseAndKeep(a, Lease(a, 16));
  End(leaver);
  ASSERT_TRUE(Delete("gone").ok()) << "before it is known that they are kept";
  RunFor(seconds(10));
  ASSERT_EQ(Of("a").unreturned_bytes, 16 * kGranule);
  ASSERT_EQ(InPool().missing_bytes, 4 * kGranule);
  world.Die();
  EXPECT_EQ(Of("a").unreturned_bytes, 16 * kGranule) << "before any reading";
  EXPECT_EQ(InPool().missing_bytes, 4 * kGranule);
  EXPECT_EQ(Outcome(a, Ask(a, 8)), "TENANT_LIMIT");
  RunFor(seconds(10));
  EXPECT_EQ(Of("a").unreturned_bytes, 16 * kGranule);
  world.HoldSlabs(kept, false);
  world.HoldSlabs(orphaned, false);
  RunFor(seconds(2));
  EXPECT_EQ(Of("a").unreturned_bytes, 0u);
  EXPECT_EQ(InPool().missing_bytes, 0u);
}

// The deletion is on the disk by then.
TEST_F(MachineDevicesTest, ADebtThatIsSeenWhileATenantIsDeletedIsNobodys) {
  SetTenant("gone", {.limit = 20});
  SimClient* leaver = Connect("gone");
  const SimLease kept = ReleaseAndKeep(leaver, Lease(leaver, 4));
  End(leaver);
  const auto begun = world.machine().operators().BeginDelete("gone");
  ASSERT_TRUE(begun.ok()) << begun.status();
  RunFor(seconds(10));
  ASSERT_EQ(Of("gone").unreturned_bytes, 4 * kGranule);
  EXPECT_TRUE(Delete("gone").ok());
  EXPECT_EQ(InPool().missing_bytes, 4 * kGranule);
  RunFor(seconds(10));
  EXPECT_EQ(InPool().missing_bytes, 4 * kGranule);
  world.HoldSlabs(kept, false);
  RunFor(seconds(10));
  EXPECT_EQ(InPool().missing_bytes, 0u);
  EXPECT_EQ(Parts().unreturned_bytes, 0u);
}

TEST_F(MachineDevicesTest, OfADeletedTenantItIsThePoolsMissing) {
  const quota::LeaseId lease = Lease(a, 16);
  const SimLease kept = ReleaseAndKeep(a, lease);
  End(a);
  ASSERT_TRUE(Delete("a").ok()) << "before it is known that they are kept";
  RunFor(seconds(10));
  EXPECT_EQ(InPool().missing_bytes, 16 * kGranule);
  EXPECT_EQ(Outcome(b, Ask(b, 50)), "POOL_EXHAUSTED");
  EXPECT_EQ(Outcome(b, Ask(b, 50, {.wait = seconds(60)})), "waits")
      << "it comes back by itself: no request is refused for good for it";
  world.HoldSlabs(kept, false);
  RunFor(seconds(2));
  EXPECT_EQ(InPool().missing_bytes, 0u);
  EXPECT_EQ(Outcome(b, b->last_request), "granted");
}

TEST_F(MachineDevicesTest, WhoOnlyOwesCanBeDeleted) {
  SetTenant("gone");
  SimClient* leaver = Connect("gone");
  const SimLease kept = ReleaseAndKeep(leaver, Lease(leaver, 16));
  End(leaver);
  RunFor(seconds(10));
  ASSERT_EQ(Of("gone").unreturned_bytes, 16 * kGranule);
  const uint64_t waits = Ask(b, 60, {.wait = seconds(600)});
  ASSERT_EQ(Outcome(b, waits), "waits");
  const auto begun = world.machine().operators().BeginDelete("gone");
  ASSERT_TRUE(begun.ok()) << begun.status();
  ASSERT_TRUE(Delete("gone").ok());
  EXPECT_EQ(InPool().missing_bytes, 16 * kGranule);
  EXPECT_EQ(Outcome(b, waits), "waits");
  EXPECT_EQ(InPool().leased_bytes, 0u) << "nor was it granted for a moment";
  // One that is made with its name owes nothing.
  SetTenant("gone");
  RunFor(seconds(10));
  EXPECT_EQ(Of("gone").unreturned_bytes, 0u);
  EXPECT_EQ(InPool().missing_bytes, 16 * kGranule);
  world.HoldSlabs(kept, false);
  RunFor(seconds(10));
  EXPECT_EQ(InPool().missing_bytes, 0u);
  EXPECT_EQ(Outcome(b, waits), "granted");
}

TEST_F(MachineDevicesTest, OutsideBytesUseTheHeadroomFirst) {
  world.device(kPool).SetOutside(8 * kGranule);
  RunFor(seconds(2));
  EXPECT_EQ(Parts().missing_bytes, 0u);
  EXPECT_EQ(HeadroomLeft(), 0u);
  world.device(kPool).SetOutside(10 * kGranule);
  RunFor(seconds(2));
  EXPECT_EQ(Parts().missing_bytes, 2 * kGranule);
  EXPECT_EQ(Events("missing_changed").size(), 1u);
  EXPECT_EQ(Outcome(a, Ask(a, 64)), "OVERCOMMITTED");
  world.device(kPool).SetOutside(0);
  RunFor(seconds(2));
  EXPECT_EQ(Parts().missing_bytes, 0u);
  EXPECT_NE(Lease(a, 64).value, 0u);
}

}  // namespace
}  // namespace gmb::broker
