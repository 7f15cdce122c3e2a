// Quotas and pools that operators change while programs run (docs/quota.md,
// "Live changes").
#include <chrono>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineQuotasTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
  }
  std::string Try(const std::string& name, const Terms& terms) {
    return ReasonOf(TrySetTenant(name, terms).status());
  }
  uint64_t InForce(const std::string& tenant) {
    return Of(tenant).effective_guarantee_bytes / kGranule;
  }
  size_t Applied() const { return Events("quota_applied").size(); }
  static size_t Budgets(const SimClient* client) {
    return Told(client, v1::BrokerMessage::kBudgetChanged);
  }
};

// --- Limits.

TEST_F(MachineQuotasTest, ParkedMemoryAboveALoweredLimitIsTakenAtOnce) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 20);
  const quota::LeaseId other = Lease(idle, 20);
  const v1::Change change = SetTenant("a", {.limit = 25});
  EXPECT_EQ(change.state(), v1::Change::PENDING);
  EXPECT_EQ(change.remaining_bytes(), 15 * kGranule);
  EXPECT_NE(Where(lease) == "evicting", Where(other) == "evicting")
      << "no more than it takes";
  const size_t told = Budgets(idle);
  const size_t applied = Applied();
  Work();
  EXPECT_EQ(Of("a").over_limit_bytes, 0u);
  EXPECT_GT(Budgets(idle), told) << "that it has taken effect";
  EXPECT_EQ(Applied(), applied + 1);
  EXPECT_EQ(Outcome(idle, Ask(idle, 1)), "TENANT_LIMIT")
      << "what is evicted counts against it";
}

TEST_F(MachineQuotasTest, WhoIsAtWorkIsPendingUntilItParks) {
  SimClient* busy = Active("a");
  const quota::LeaseId lease = Lease(busy, 20);
  SetTenant("a", {.limit = 10});
  RunFor(seconds(2));
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_FALSE(GateOf(busy).paused()) << "a limit pauses nobody";
  EXPECT_EQ(Of("a").over_limit_bytes, 10 * kGranule);
  Park(busy);
  RunFor(milliseconds(20));
  EXPECT_EQ(Where(lease), "evicted");
}

TEST_F(MachineQuotasTest, ANewerLimitTakesTheOldOnesPlace) {
  SimClient* busy = Active("a");
  const quota::LeaseId lease = Lease(busy, 20);
  SetTenant("a", {.limit = 10});
  SetTenant("a", {.limit = 20});
  Park(busy);
  RunFor(seconds(1));
  EXPECT_EQ(Where(lease), "mapped");
}

TEST_F(MachineQuotasTest, ALoweredLimitWaitsForTheResidency) {
  SetTenant("a", {.min_residency = seconds(5)});
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 20);
  SetTenant("a", {.limit = 10, .min_residency = seconds(5)});
  RunFor(milliseconds(4900));
  EXPECT_EQ(Where(lease), "mapped");
  RunFor(milliseconds(200));
  EXPECT_EQ(Where(lease), "evicted");
}

TEST_F(MachineQuotasTest, ARaisedLimitServesWhoWaitsForItAndIsToldBefore) {
  SetTenant("a", {.limit = 10});
  SimClient* client = Connect("a");
  Lease(client, 10);
  const uint64_t id = Ask(client, 5, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(client, id), "waits");
  client->said.clear();
  SetTenant("a", {.limit = 15});
  RunDevice();
  ASSERT_EQ(Outcome(client, id), "granted");
  ASSERT_TRUE(client->said.front().has_budget_changed());
  EXPECT_EQ(client->said.front().budget_changed().quota().limit_bytes(),
            15 * kGranule);
}

// --- Guarantees.

TEST_F(MachineQuotasTest, ARaisedGuaranteeIsPendingUntilOthersRelease) {
  SimClient* holder = Connect("b");  // without a gate: hard
  const quota::LeaseId first = Lease(holder, 20);
  const quota::LeaseId second = Lease(holder, 20);
  SetTenant("c");
  EXPECT_EQ(SetTenant("a", {.guarantee = 30}).remaining_bytes(), 6 * kGranule);
  EXPECT_EQ(SetTenant("c", {.guarantee = 30}).remaining_bytes(), 30 * kGranule);
  EXPECT_EQ(InForce("a"), 24u);
  EXPECT_EQ(InForce("c"), 0u);
  SimClient* client = Connect("a");
  const size_t applied = Applied();
  Release(holder, first);
  EXPECT_EQ(InForce("a"), 30u) << "in the order in which they were asked for";
  EXPECT_EQ(InForce("c"), 14u);
  EXPECT_EQ(Applied(), applied + 1);
  EXPECT_EQ(Budgets(client), 1u);
  Release(holder, second);
  EXPECT_EQ(InForce("c"), 30u);
  EXPECT_EQ(Applied(), applied + 2);
}

TEST_F(MachineQuotasTest, AskingForMoreIsANewPlaceAtTheEnd) {
  SimClient* holder = Connect("b");
  const quota::LeaseId lease = Lease(holder, 10);
  Lease(holder, 44);
  SetTenant("c");
  SetTenant("a", {.guarantee = 20});
  SetTenant("c", {.guarantee = 20});
  SetTenant("a", {.guarantee = 24});
  const uint64_t before = InForce("a");
  Release(holder, lease);
  EXPECT_EQ(InForce("c"), 10u);
  EXPECT_EQ(InForce("a"), before);
}

TEST_F(MachineQuotasTest, ALoweredGuaranteeIsLentAtOnce) {
  SetTenant("a", {.guarantee = 40});
  SimClient* borrower = Connect("b");
  Lease(borrower, 20);
  const uint64_t id = Ask(borrower, 4, {.wait = seconds(60)});
  SimClient* other = Connect("b");
  EXPECT_EQ(Outcome(other, Ask(other, 10)), "OVERCOMMITTED");
  SetTenant("a");
  RunDevice();
  EXPECT_EQ(Outcome(borrower, id), "granted");
  EXPECT_EQ(Outcome(other, Ask(other, 10)), "granted");
}

// --- Refused as a whole.

TEST_F(MachineQuotasTest, AChangeThatCannotBeIsRefusedAndChangesNothing) {
  SetTenant("a", {.guarantee = 40, .limit = 50});
  SimClient* client = Connect("a");
  const size_t told = Budgets(client);
  const auto refused = TrySetTenant("b", {.guarantee = 30});
  EXPECT_EQ(ReasonOf(refused.status()), "OVERCOMMITTED");
  EXPECT_NE(refused.status().message().find("lower some guarantee"),
            std::string::npos);
  EXPECT_EQ(Try("a", {.guarantee = 40, .limit = 30}), "BAD_REQUEST");
  EXPECT_EQ(Try("a", {.guarantee = 40, .limit = 50, .weight = 0}),
            "BAD_REQUEST");
  EXPECT_EQ(Try("a", {.guarantee = 40, .limit = 50, .max_handles = 0}),
            "BAD_REQUEST");
  EXPECT_EQ(Try("a", {.guarantee = 40, .limit = 50, .max_sessions = 0}),
            "BAD_REQUEST");
  EXPECT_EQ(InForce("a"), 40u);
  EXPECT_EQ(Of("a").limit_bytes, 50 * kGranule);
  EXPECT_EQ(InForce("b"), 0u);
  EXPECT_EQ(Budgets(client), told);
}

TEST_F(MachineQuotasTest, ATenantsNameIsAPathAndIsCheckedAsOne) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string("../x"), std::string("A"),
        std::string("a/b"), std::string("-a"), std::string(64, 'a'),
        std::string("a\n")}) {
    EXPECT_EQ(Try(name, {}), "BAD_REQUEST") << name;
  }
  EXPECT_EQ(Try(std::string(63, 'a'), {}), "OK");
  EXPECT_EQ(Try("0.a-b_c", {}), "OK");
}

// --- Sessions that are told.

TEST_F(MachineQuotasTest, AllSessionsOfTheTenantAreToldAndNoOther) {
  SimClient* one = Connect("a");
  SimClient* two = Connect("a");
  SimClient* other = Connect("b");
  SetTenant("a", {.guarantee = 5, .limit = 50});
  EXPECT_EQ(Budgets(one), 1u);
  EXPECT_EQ(Budgets(two), 1u);
  EXPECT_EQ(Budgets(other), 0u);
  const v1::QuotaView view = one->said.back().budget_changed().quota();
  EXPECT_EQ(view.guarantee_bytes(), 5 * kGranule);
  EXPECT_EQ(view.limit_bytes(), 50 * kGranule);
  EXPECT_EQ(view.device(), "sim-1");
}

TEST_F(MachineQuotasTest, FewerHandlesCountForNewLeases) {
  SimClient* client = Connect("a");
  const quota::LeaseId lease = Lease(client, 8);  // four slabs
  SetTenant("a", {.max_handles = 4});
  EXPECT_EQ(Outcome(client, Ask(client, 1)), "TOO_MANY_HANDLES");
  EXPECT_EQ(Outcome(client, Ask(client, 1, {.wait = seconds(60)})),
            "TOO_MANY_HANDLES")
      << "they are never waited for";
  EXPECT_EQ(Where(lease), "mapped");
  Release(client, lease);
  EXPECT_NE(Lease(client, 1).value, 0u);
}

// --- Pools.

TEST_F(MachineQuotasTest, AShrinkIsPendingUntilTheDeviceHasTheRestBack) {
  RunFor(seconds(1));  // its slabs are made
  const auto change = Resize(32);
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(change->state(), v1::Change::PENDING)
      << "nobody has it leased, and the broker holds it still";
  RunFor(seconds(1));
  EXPECT_EQ(Parts().capacity_bytes, 32 * kGranule);
  const auto again = Resize(32);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->state(), v1::Change::APPLIED);
}

TEST_F(MachineQuotasTest, AShrinkTakesParkedMemoryOfBorrowersAndPausesNobody) {
  SetTenant("a", {.guarantee = 20});
  SimClient* idle = Parked("a");
  const quota::LeaseId within = Lease(idle, 20);
  SimClient* borrower = Parked("b");
  const quota::LeaseId borrowed = Lease(borrower, 10);
  SimClient* busy = Active("b");
  const quota::LeaseId used = Lease(busy, 20);
  const auto change = Resize(40);
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(change->state(), v1::Change::PENDING);
  RunFor(seconds(1));
  EXPECT_EQ(Where(borrowed), "evicted");
  EXPECT_EQ(Where(within), "mapped");
  EXPECT_EQ(Where(used), "mapped");
  EXPECT_FALSE(GateOf(busy).paused());
  EXPECT_EQ(InPool().capacity_bytes, 40 * kGranule);
}

TEST_F(MachineQuotasTest, HardMemoryHoldsAShrinkUp) {
  SimClient* client = Connect("a");
  const quota::LeaseId lease = Lease(client, 40);
  const auto change = Resize(30);
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(change->state(), v1::Change::PENDING);
  RunFor(seconds(1));
  EXPECT_EQ(InPool().capacity_bytes, 40 * kGranule);
  EXPECT_EQ(Outcome(client, Ask(client, 1)), "TENANT_LIMIT")
      << "its share of the pool has shrunk";
  Release(client, lease);
  RunFor(seconds(1));
  EXPECT_EQ(InPool().capacity_bytes, 30 * kGranule);
  EXPECT_EQ(Parts().capacity_bytes, 30 * kGranule);
}

TEST_F(MachineQuotasTest, AShrinkAsksWhatHardMemoryCanSpare) {
  SimClient* client = Connect("a");
  const quota::LeaseId cached = Lease(client, 20);
  Lease(Connect("b"), 30);
  ASSERT_TRUE(Resize(40).ok());
  RunFor(seconds(1));
  SetTrimmable(client, 20);
  ASSERT_EQ(Told(client, v1::BrokerMessage::kTrim), 1u);
  Release(client, cached);
  Trimmed(client);
  RunFor(seconds(1));
  EXPECT_EQ(InPool().capacity_bytes, 40 * kGranule);
  SetTrimmable(client, 4);
  EXPECT_EQ(Told(client, v1::BrokerMessage::kTrim), 1u) << "it is over";
}

TEST_F(MachineQuotasTest, AShrinkTakesNoMoreThanLimitsThatShrinkWithItLeave) {
  SetTenant("a", {.share = 0.5});
  SimClient* longest = Parked("b");
  for (int i = 0; i < 7; ++i) Lease(longest, 4);
  RunFor(seconds(1));
  SimClient* limited = Parked("a");
  for (int i = 0; i < 4; ++i) Lease(limited, 8);
  ASSERT_TRUE(Resize(32).ok());
  RunFor(seconds(1));
  EXPECT_EQ(Of("a").resident_bytes, 16 * kGranule);
  EXPECT_EQ(Of("b").resident_bytes, 16 * kGranule);
}

TEST_F(MachineQuotasTest, AShrinkTakesNoMoreThanManyLeasesAboveALimitLeave) {
  SetTenant("a", {.share = 0.5});
  SimClient* longest = Parked("b");
  for (int i = 0; i < 7; ++i) Lease(longest, 4);
  RunFor(seconds(1));
  SimClient* limited = Parked("a");
  for (int i = 0; i < 32; ++i) Lease(limited, 1);
  ASSERT_TRUE(Resize(16).ok());
  RunFor(seconds(1));
  EXPECT_EQ(Of("a").resident_bytes, 8 * kGranule);
  EXPECT_EQ(Of("b").resident_bytes, 8 * kGranule);
  EXPECT_EQ(InPool().capacity_bytes, 16 * kGranule);
}

TEST_F(MachineQuotasTest, AShrinkAsksNobodyWithinTheGuarantee) {
  SetTenant("a", {.guarantee = 20});
  SimClient* client = Connect("a");
  Lease(client, 20);
  Lease(Connect("b"), 30);
  ASSERT_TRUE(Resize(40).ok());
  RunFor(seconds(1));
  SetTrimmable(client, 8);
  RunFor(seconds(1));
  EXPECT_EQ(Told(client, v1::BrokerMessage::kTrim), 0u)
      << "the pool would be no smaller";
}

TEST_F(MachineQuotasTest, BytesThatComeFreeGoToTheShrinkFirst) {
  SimClient* client = Connect("a");
  const quota::LeaseId lease = Lease(client, 20);
  Lease(client, 20);
  SimClient* waiter = Connect("b");
  ASSERT_TRUE(Resize(44).ok());
  const uint64_t id = Ask(waiter, 10, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(waiter, id), "waits");
  ASSERT_TRUE(Resize(24).ok());
  Release(client, lease);
  Work();
  EXPECT_EQ(Outcome(waiter, id), "waits") << "4 of 24 are left";
  EXPECT_EQ(InPool().capacity_bytes, 24 * kGranule);
}

TEST_F(MachineQuotasTest, SharesFollowThePool) {
  EXPECT_EQ(Of("a").limit_bytes, 64 * kGranule);
  ASSERT_TRUE(Resize(30).ok());
  EXPECT_EQ(Of("a").limit_bytes, 30 * kGranule);
  ASSERT_TRUE(Resize(70).ok());
  EXPECT_EQ(Of("a").limit_bytes, 70 * kGranule);
}

TEST_F(MachineQuotasTest, ASizeThatCannotBeIsRefused) {
  SetTenant("a", {.guarantee = 40, .limit = 40});
  EXPECT_EQ(ReasonOf(Resize(39).status()), "OVERCOMMITTED");
  EXPECT_EQ(ReasonOf(Resize(0).status()), "BAD_REQUEST");
  EXPECT_EQ(ReasonOf(Resize(73).status()), "BAD_REQUEST")
      << "more than others leave free";
  EXPECT_EQ(InPool().target_bytes, 64 * kGranule);
  EXPECT_TRUE(Events("pool_resized").empty());
  EXPECT_TRUE(Resize(40).ok());
}

TEST_F(MachineQuotasTest, AGrownPoolServesWhoWaits) {
  ASSERT_TRUE(Resize(30).ok());
  RunFor(seconds(1));
  Lease(Active("a"), 30);
  SimClient* waiter = Parked("b");
  const uint64_t id = Ask(waiter, 10, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(waiter, id), "waits");
  ASSERT_TRUE(Resize(40).ok());
  RunDevice();
  EXPECT_EQ(Outcome(waiter, id), "granted");
}

}  // namespace
}  // namespace gmb::broker
