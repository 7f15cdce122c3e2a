// Leases that another engine has granted: charged whatever the quotas are now.
#include "tests/quota/engine_fixture.h"

namespace gmb::quota {
namespace {

class AdoptTest : public EngineTest {
 protected:
  static AdoptedLease Held(uint64_t id, TenantId tenant, uint64_t bytes,
                           bool hard = true, bool evicted = false) {
    return {.id = LeaseId{id},
            .lease = {.session = SessionId{tenant.value},
                      .tenant = tenant,
                      .pool = kPool,
                      .bytes = bytes,
                      .handles = 1,
                      .hard = hard && !evicted,
                      .evicted = evicted}};
  }
  void Adopt(const std::vector<AdoptedLease>& leases, uint64_t last = 0) {
    last_ = engine_.Adopt(leases, last, now_);
  }
};

TEST_F(AdoptTest, TheBooksAreWhatTheyWere) {
  Adopt({Held(7, kA, 30), Held(9, kA, 20, /*hard=*/false),
         Held(8, kB, 40, false, /*evicted=*/true)});
  EXPECT_EQ(View(kA).leased_bytes, 50u);
  EXPECT_EQ(View(kA).hard_bytes, 30u);
  EXPECT_EQ(View(kB).evicted_bytes, 40u);
  EXPECT_EQ(Pool().charged_bytes, 50u);
  EXPECT_EQ(engine_.leases(), 3u);
  EXPECT_EQ(engine_.handles(), 3u);
  EXPECT_FALSE(Take(kC, 51).has_value());
  EXPECT_TRUE(Take(kC, 50).has_value());
  Release(LeaseId{7});
  EXPECT_EQ(View(kA).leased_bytes, 20u);
}

TEST_F(AdoptTest, IdsGoOnFromTheGreatest) {
  Adopt({Held(7, kA, 1)}, 40);
  EXPECT_EQ(Take(kA, 1), LeaseId{41});
  Adopt({Held(90, kA, 1)}, 50);
  EXPECT_EQ(Take(kA, 1), LeaseId{91});
}

// As it was before, when the guarantee was set after the lease was granted.
TEST_F(AdoptTest, AGuaranteeThatHardBytesLeaveNoRoomForIsPending) {
  SetQuota(kB, 50, 100);
  ASSERT_EQ(View(kB).effective_guarantee_bytes, 50u);
  Adopt({Held(1, kA, 80)});
  EXPECT_EQ(View(kB).effective_guarantee_bytes, 20u);
  EXPECT_EQ(Pool().broken_bytes, 0u);
  Release(LeaseId{1});
  EXPECT_EQ(View(kB).effective_guarantee_bytes, 50u);
}

TEST_F(AdoptTest, SoftBytesLeaveGuaranteesInForce) {
  SetQuota(kB, 50, 100);
  Adopt({Held(1, kA, 80, /*hard=*/false)});
  EXPECT_EQ(View(kB).effective_guarantee_bytes, 50u);
}

TEST_F(AdoptTest, APoolThatIsTooSmallByNowIsLargerUntilTheyAreGone) {
  Do(PoolSet{kPool, 60, 1});
  Adopt({Held(1, kA, 50), Held(2, kB, 30)});
  EXPECT_EQ(Pool().target_bytes, 60u);
  EXPECT_EQ(Pool().capacity_bytes, 80u);
  EXPECT_THAT(Said(), testing::Contains(testing::HasSubstr("PoolPending")));
  Release(LeaseId{2});
  EXPECT_EQ(Pool().capacity_bytes, 60u);
  EXPECT_THAT(Said(), testing::Contains(testing::HasSubstr("PoolApplied")));
}

TEST_F(AdoptTest, ALimitThatWasLoweredIsExceeded) {
  SetQuota(kA, 0, 10);
  Adopt({Held(1, kA, 50)});
  EXPECT_EQ(View(kA).over_limit_bytes, 40u);
  EXPECT_FALSE(Take(kA, 1).has_value());
}

TEST_F(AdoptTest, WhatMakesNoSenseIsLeftOut) {
  AdoptedLease no_pool = Held(1, kA, 1);
  no_pool.lease.pool = PoolId{9};
  AdoptedLease no_handles = Held(2, kA, 1);
  no_handles.lease.handles = 0;
  Adopt({no_pool, no_handles, Held(3, TenantId{99}, 1), Held(4, kA, 0),
         Held(0, kA, 1), Held(5, kA, kMaxPoolBytes + 1), Held(6, kA, 1),
         Held(6, kB, 1)});
  EXPECT_EQ(engine_.leases(), 1u);
  EXPECT_EQ(View(kA).leased_bytes, 1u);
  EXPECT_EQ(View(kB).leased_bytes, 0u);
}

}  // namespace
}  // namespace gmb::quota
