// Which demands an event may help: those of its pool and tenant, and of no
// others; and one that sleeps is woken by these alone.
#include "broker/machine/index_keeper.h"

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

class IndexKeeperTest : public MachineFixture {
 protected:
  static MachineWorld TwoPools() {
    MachineWorld world;
    world.pools = 2;
    return world;
  }
  IndexKeeperTest() : MachineFixture(TwoPools()) {}
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    a = IdOf("a");
    b = IdOf("b");
    copy.emplace(state());
    keeper.emplace(*copy);
    (void)keeper->TakeWoken();
  }
  uint64_t Of(quota::PoolId pool, quota::TenantId tenant) {
    return copy->reclaim->changes(pool, tenant);
  }
  // Whether the event changes that figure.
  bool Changes(const quota::Event& event, quota::PoolId pool,
               quota::TenantId tenant) {
    const uint64_t before = Of(pool, tenant);
    keeper->MarkChangedBy(event);
    return Of(pool, tenant) != before;
  }
  static constexpr quota::PoolId kOther{2};
  quota::TenantId a, b;
  std::optional<State> copy;  // what the keeper changes
  std::optional<IndexKeeper> keeper;
};

TEST_F(IndexKeeperTest, AnEventOfATenantOnAPoolHelpsThatOneThere) {
  quota::QuotaSet quota;
  quota.pool = kPool;
  quota.tenant = a;
  EXPECT_TRUE(Changes(quota, kPool, a));
  EXPECT_FALSE(Changes(quota, kPool, b));
  EXPECT_FALSE(Changes(quota, kOther, a));
  quota::UnreturnedChanged owed;
  owed.pool = kOther;
  owed.tenant = b;
  EXPECT_TRUE(Changes(owed, kOther, b));
  EXPECT_FALSE(Changes(owed, kPool, b));
}

TEST_F(IndexKeeperTest, AnEventOfATenantHelpsItEverywhere) {
  quota::TenantSet tenant;
  tenant.tenant = a;
  EXPECT_TRUE(Changes(tenant, kPool, a));
  EXPECT_TRUE(Changes(tenant, kOther, a));
  EXPECT_FALSE(Changes(tenant, kPool, b));
}

TEST_F(IndexKeeperTest, AnEventOfAPoolIsSeenInItsOwnFigure) {
  const auto changes = [&](const quota::Event& event, quota::PoolId pool) {
    const uint64_t before = copy->reclaim->changes(pool);
    keeper->MarkChangedBy(event);
    return copy->reclaim->changes(pool) != before;
  };
  quota::PoolSet set;
  set.pool = kPool;
  quota::PoolDrain drain;
  drain.pool = kPool;
  quota::MissingChanged missing;
  missing.pool = kPool;
  for (const quota::Event& event :
       {quota::Event(set), quota::Event(drain), quota::Event(missing)}) {
    EXPECT_TRUE(changes(event, kPool));
    EXPECT_FALSE(changes(event, kOther));
  }
  EXPECT_FALSE(changes(quota::Tick{}, kPool)) << "time alone helps nobody";
}

// Its guarantees may have kept any pool large.
TEST_F(IndexKeeperTest, TheEndOfATenantIsSeenInEachPool) {
  const uint64_t here = copy->reclaim->changes(kPool);
  const uint64_t there = copy->reclaim->changes(kOther);
  keeper->MarkChangedBy(quota::TenantRemove{a});
  EXPECT_GT(copy->reclaim->changes(kPool), here);
  EXPECT_GT(copy->reclaim->changes(kOther), there);
}

TEST_F(IndexKeeperTest, OneThatSleepsIsWokenByItsOwnFigureOnce) {
  keeper->Sleep(kPool, a);
  keeper->MarkChanged(kPool, b);
  keeper->MarkChanged(kOther, a);
  EXPECT_FALSE(keeper->TakeWoken());
  keeper->MarkChanged(kPool, a);
  EXPECT_TRUE(keeper->TakeWoken());
  EXPECT_FALSE(keeper->TakeWoken());
  keeper->MarkChanged(kPool, a);
  EXPECT_FALSE(keeper->TakeWoken()) << "nobody sleeps any more";
}

TEST_F(IndexKeeperTest, AMarkEverywhereIsOfEachPool) {
  const uint64_t here = copy->reclaim->changes(kPool);
  const uint64_t there = copy->reclaim->changes(kOther);
  keeper->MarkChangedEverywhere();
  EXPECT_GT(copy->reclaim->changes(kPool), here);
  EXPECT_GT(copy->reclaim->changes(kOther), there);
}

// The record of a lease goes the same way as the index.
TEST_F(IndexKeeperTest, ALeaseThatIsTouchedIsRecordedAnew) {
  SimClient* parked = Parked("a");
  const quota::LeaseId lease = Lease(parked, 2, {.device = "sim-1"});
  copy.emplace(state());
  keeper.emplace(*copy);
  ASSERT_TRUE(copy->reclaim->ListedIn(kPool).contains(a));
  keeper->Forget(&copy->LeaseAt(lease));
  EXPECT_FALSE(copy->reclaim->ListedIn(kPool).contains(a));
  keeper->Touch(&copy->LeaseAt(lease));
  EXPECT_TRUE(copy->reclaim->ListedIn(kPool).at(a).contains(lease));
  EXPECT_TRUE(copy->reclaim->IsTrueOf(*copy, copy->LeaseAt(lease)));
}

}  // namespace
}  // namespace gmb::broker
