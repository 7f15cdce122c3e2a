// The planner is told of leases, tenants and requests that lack bytes.
#include "broker/machine/reclaim_rows.h"

#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;

class ReclaimRowsTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a", {.guarantee = 8,
                    .weight = 3,
                    .may_terminate = true,
                    .min_residency = seconds(7),
                    .pause_grace = seconds(2)});
    SetTenant("owner", {.guarantee = 32});
    idle = Parked("a");
  }
  quota::LeaseRow Row(quota::LeaseId lease) {
    return RowOf(state(), state().LeaseAt(lease), world.now());
  }
  SimClient* idle = nullptr;
};

TEST_F(ReclaimRowsTest, ALeaseIsToldWithItsSessionAndItsGate) {
  const quota::LeaseId lease = Lease(idle, 4);
  RunFor(seconds(3));
  quota::LeaseRow row = Row(lease);
  EXPECT_EQ(row.lease, lease);
  EXPECT_EQ(row.session.value, idle->session);
  EXPECT_EQ(row.bytes, 4 * kGranule);
  EXPECT_EQ(row.gate, quota::Gate::kParked);
  EXPECT_EQ(row.contents, quota::Contents::kPreserve);
  EXPECT_TRUE(row.host_room);
  EXPECT_TRUE(row.evictable);
  EXPECT_FALSE(row.evicted);
  EXPECT_FALSE(row.busy);
  EXPECT_EQ(row.backed_bytes, 0u);
  EXPECT_LE(row.idle_since, world.now() + -seconds(3));
  EXPECT_TRUE(Enter(idle));
  row = Row(lease);
  EXPECT_EQ(row.gate, quota::Gate::kActive);
  EXPECT_EQ(row.idle_since, world.now()) << "while a scope is in";
}

TEST_F(ReclaimRowsTest, WhatCannotBeTakenIsToldAsThat) {
  EXPECT_EQ(Row(Lease(idle, 1, {.contents = v1::RESIDENT})).contents,
            quota::Contents::kResident);
  EXPECT_EQ(Row(Lease(idle, 1, {.contents = v1::DISCARD})).contents,
            quota::Contents::kDiscard);
  SimClient* off = Connect("a");
  const quota::LeaseRow row = Row(Lease(off, 1));
  EXPECT_EQ(row.gate, quota::Gate::kOff);
  EXPECT_FALSE(row.host_room);
}

TEST_F(ReclaimRowsTest, OneThatMovesIsBusyAndOneThatIsAwayIsEvicted) {
  const quota::LeaseId lease = Lease(idle, 4);
  Reclaim("a");
  EXPECT_TRUE(Row(lease).busy);
  EXPECT_GT(Row(lease).unmap_deadline, world.now());
  EXPECT_NE(Row(lease).unmap_deadline, quota::Instant::Max());
  Work();
  EXPECT_TRUE(Row(lease).evicted);
  EXPECT_EQ(Row(lease).unmap_deadline, quota::Instant::Max());
  Restore(idle);
  Work();
  EXPECT_EQ(Row(lease).backed_bytes, 4 * kGranule) << "its copy is true still";
}

TEST_F(ReclaimRowsTest, AnswersThatAreOwedAreToldWithAllLeasesOfTheProcess) {
  const quota::LeaseId asked = Lease(idle, 4);
  const quota::LeaseId other = Lease(idle, 4);
  stubborn.insert(idle);
  Reclaim("a", 4);
  RunFor(seconds(3));
  EXPECT_EQ(Row(asked).owed_by_process, 1u);
  EXPECT_EQ(Row(other).owed_by_process, 1u);
  const quota::TenantRow row = TenantRowOf(state(), IdOf("a"), kPool);
  EXPECT_EQ(row.owed_answers, 1u);
}

TEST_F(ReclaimRowsTest, ATenantIsToldWithItsTerms) {
  Lease(idle, 20);
  const quota::TenantRow row = TenantRowOf(state(), IdOf("a"), kPool);
  EXPECT_EQ(row.guarantee_bytes, 8 * kGranule);
  EXPECT_EQ(row.resident_bytes, 20 * kGranule);
  EXPECT_EQ(row.weight, 3);
  EXPECT_TRUE(row.may_terminate);
  EXPECT_EQ(row.min_residency, seconds(7));
  EXPECT_EQ(row.pause_grace, seconds(2));
}

TEST_F(ReclaimRowsTest, OfASharedLeaseAllUsersAreTold) {
  const quota::LeaseId lease = Lease(idle, 4, {.share_as = "w"});
  SimClient* reader = Parked("a", "ranks");
  SimClient* member = Parked("a", "ranks");
  EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  const quota::LeaseRow row = Row(lease);
  EXPECT_EQ(row.session, quota::SessionId{}) << "it has none of its own";
  ASSERT_EQ(row.users.size(), 3u) << "with those who move together with them";
  EXPECT_EQ(row.gate, quota::Gate::kParked);
  EXPECT_TRUE(Enter(member));
  EXPECT_EQ(Row(lease).gate, quota::Gate::kActive) << "the least parked";
}

TEST_F(ReclaimRowsTest, AGroupsLeasesAreToldAsTheGroups) {
  SimClient* one = Parked("a", "ranks");
  SimClient* two = Parked("a", "ranks");
  const quota::LeaseId of_one = Lease(one, 2);
  const quota::LeaseId of_two = Lease(two, 2);
  EXPECT_EQ(Row(of_one).group, Row(of_two).group);
  EXPECT_NE(Row(of_one).group, quota::GroupId{});
  EXPECT_TRUE(Enter(two));
  EXPECT_EQ(Row(of_one).gate, quota::Gate::kActive);
}

TEST_F(ReclaimRowsTest, WhoLacksBytesIsToldBesideWhatIsComing) {
  EXPECT_FALSE(ShortageIn(state(), kPool, true).has_value());
  Lease(Active("a"), 44);
  RunFor(seconds(8));  // it is not young any more
  SimClient* owner = Parked("owner", "ranks");
  Ask(owner, 32, {.wait = seconds(60)});
  const auto lacking = ShortageIn(state(), kPool, /*pausing=*/false);
  ASSERT_TRUE(lacking.has_value());
  EXPECT_EQ(lacking->lacking_bytes, 12 * kGranule);
  EXPECT_TRUE(lacking->within_guarantee);
  EXPECT_FALSE(ShortageIn(state(), kPool, /*pausing=*/true).has_value())
      << "a pause will free them";
  const quota::Demand demand = DemandOf(state(), *lacking, world.now());
  EXPECT_EQ(demand.cause, quota::Cause::kWithinGuarantee);
  EXPECT_EQ(demand.session.value, owner->session);
  EXPECT_NE(demand.group, quota::GroupId{}) << "its group's leases stay";
  ASSERT_EQ(demand.needs.size(), 1u);
  EXPECT_EQ(demand.needs[0].bytes, 12 * kGranule);
  EXPECT_EQ(demand.deadline, world.now() + seconds(60));
}

TEST_F(ReclaimRowsTest, ABorrowerCollectsOnlyWhileItsClaimHolds) {
  Lease(Active("a"), 60);
  SetTenant("b");
  Ask(Parked("b"), 20, {.wait = seconds(60)});
  auto lacking = ShortageIn(state(), kPool, true);
  ASSERT_TRUE(lacking.has_value());
  quota::Demand demand = DemandOf(state(), *lacking, world.now());
  EXPECT_EQ(demand.cause, quota::Cause::kBorrow);
  EXPECT_FALSE(demand.collects) << "others pass for a second";
  RunFor(std::chrono::milliseconds(1100));
  lacking = ShortageIn(state(), kPool, true);
  ASSERT_TRUE(lacking.has_value());
  demand = DemandOf(state(), *lacking, world.now());
  EXPECT_TRUE(demand.collects);
}

}  // namespace
}  // namespace gmb::broker
