// A request that waits for hard bytes becomes one for soft bytes, where it waits.
#include "tests/quota/engine_fixture.h"

namespace gmb::quota {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SoftenedTest : public EngineTest {
 protected:
  Acquire Soft(TenantId tenant, uint64_t bytes, Nanoseconds wait = {}) {
    return {.request = RequestId{++last_request_},
            .session = SessionId{tenant.value},
            .tenant = tenant,
            .pool = kPool,
            .bytes = bytes,
            .deadline = now_ + wait,
            .hard = false};
  }
  RequestId WaitSoft(TenantId tenant, uint64_t bytes) {
    const Acquire acquire = Soft(tenant, bytes, 10 * kSecond);
    Do(acquire);
    return acquire.request;
  }
};

// All that is free is A's guarantee.
TEST_F(SoftenedTest, ItMayHaveWhatAGuaranteeDoesNotUse) {
  SetQuota(kA, 40, 100);
  Take(kB, 60);
  const RequestId waiting = Wait(kC, 30);
  ASSERT_TRUE(engine_.IsWaiting(waiting));
  Do(Softened{waiting});
  EXPECT_THAT(GrantedRequests(), ElementsAre(waiting));
  EXPECT_FALSE(engine_.Lease(*LeaseOf(waiting))->hard);
  EXPECT_EQ(engine_.waiting(), 0u);
}

TEST_F(SoftenedTest, ItKeepsItsPlace) {
  const auto all = Take(kC, 100);
  const RequestId older = Wait(kA, 60);
  const RequestId younger = Wait(kB, 60);
  Do(Softened{older});
  EXPECT_EQ(View(kA).waiting_bytes, 60u);
  Release(all);
  EXPECT_THAT(GrantedRequests(), ElementsAre(older));
  EXPECT_TRUE(engine_.IsWaiting(younger));
}

TEST_F(SoftenedTest, ItKeepsItsDeadline) {
  Take(kC, 100);
  const RequestId waiting = Wait(kA, 60, kSecond);
  Do(Softened{waiting});
  EXPECT_EQ(engine_.NextDeadline(), Instant{} + kSecond);
  Advance(kSecond);
  Do(Tick{});
  EXPECT_EQ(OnlyDenied().request, waiting);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 60));
}

// Others could pass it for one second, and that is over.
TEST_F(SoftenedTest, ItKeepsItsClaim) {
  Take(kA, 60);
  const RequestId head = Wait(kB, 50);
  EXPECT_TRUE(Take(kC, 5));
  Advance(kSecond);
  EXPECT_FALSE(Take(kC, 5));
  Do(Softened{head});
  EXPECT_FALSE(Take(kC, 5));
  EXPECT_TRUE(engine_.IsWaiting(head));
}

// B's 30 soft bytes cover it only as a soft one: as a hard one it lacks the sum.
class SoftenedClaimTest : public SoftenedTest {
 protected:
  void SetUp() override {
    SoftenedTest::SetUp();
    SetQuota(kA, 40, 100);
    Take(kB, 30);
    Do(Soft(kB, 30));
    head_ = Wait(kC, 50, 100 * kSecond);
    ASSERT_TRUE(engine_.IsWaiting(head_));
  }
  // Whether others pass it; they give it back.
  bool Passes() {
    const std::optional<LeaseId> lease = Take(kB, 5);
    if (lease) Release(lease);
    return lease.has_value();
  }
  // After so many seconds of its wait.
  bool PassesAt(int64_t seconds) {
    now_ = Instant{} + seconds * kSecond;
    return Passes();
  }
  RequestId head_;
};

// It holds for 1 s, 2 s, 6 s and 18 s, the last time from 19 s on.
TEST_F(SoftenedClaimTest, AsAHardOneItHoldsShortAtFirst) {
  EXPECT_TRUE(PassesAt(0));
  EXPECT_FALSE(PassesAt(1));
  EXPECT_TRUE(PassesAt(2));
  EXPECT_FALSE(PassesAt(36));
  EXPECT_TRUE(PassesAt(38));
  EXPECT_TRUE(PassesAt(39));
}

TEST_F(SoftenedClaimTest, ItHoldsForAsLongAsReclaimNeedsOnceItIsCovered) {
  EXPECT_TRUE(PassesAt(38));
  Do(Softened{head_});
  ASSERT_TRUE(engine_.IsWaiting(head_));
  EXPECT_TRUE(Passes());
  EXPECT_FALSE(PassesAt(39));
  EXPECT_FALSE(PassesAt(46));
  EXPECT_TRUE(PassesAt(47));
}

TEST_F(SoftenedClaimTest, AHoldThatLastsAsLongByItselfGoesOn) {
  EXPECT_FALSE(PassesAt(20));
  Do(Softened{head_});
  EXPECT_FALSE(Passes());
  EXPECT_FALSE(PassesAt(36));
  EXPECT_TRUE(PassesAt(37));
}

TEST_F(SoftenedClaimTest, AShortHoldGoesOnForAsLongAsReclaimNeeds) {
  EXPECT_FALSE(PassesAt(3));
  Do(Softened{head_});
  EXPECT_FALSE(Passes());
  EXPECT_FALSE(PassesAt(10));
  EXPECT_TRUE(PassesAt(11));
  EXPECT_TRUE(PassesAt(18));
  EXPECT_FALSE(PassesAt(19));
}

// It has not held yet: others pass for its first second and no longer.
TEST_F(SoftenedClaimTest, ItsFirstSecondIsCountedOnce) {
  now_ = Instant{} + kSecond / 2;
  Do(Softened{head_});
  EXPECT_TRUE(Passes());
  EXPECT_FALSE(PassesAt(1));
  EXPECT_FALSE(PassesAt(8));
  EXPECT_TRUE(PassesAt(9));
}

TEST_F(SoftenedTest, WhatIsKeptForItNobodyHasMeanwhile) {
  SetQuota(kA, 50, 100);
  Do(Soft(kB, 70));
  const RequestId within = Wait(kA, 50);
  const RequestId behind = WaitSoft(kC, 20);  // 30 are free
  ASSERT_TRUE(engine_.IsWaiting(behind));
  Do(Softened{within});
  EXPECT_THAT(GrantedRequests(), IsEmpty());
  EXPECT_TRUE(engine_.IsWaiting(within));
  EXPECT_TRUE(engine_.IsWaiting(behind));
}

TEST_F(SoftenedTest, ItsHandlesAreNotAskedForBefore) {
  Take(kB, 80);
  const RequestId waiting = Wait(kA, 40);
  Do(TenantSet{.tenant = kA, .max_handles = 0});
  Do(Softened{waiting});
  EXPECT_TRUE(engine_.IsWaiting(waiting));
}

TEST_F(SoftenedTest, NothingHappensToOneThatIsSoftOrDoesNotWait) {
  Do(Soft(kB, 80));
  const LeaseId lease = *LeaseOf(RequestId{last_request_});
  const RequestId waiting = WaitSoft(kA, 40);
  EXPECT_TRUE(Do(Softened{waiting}).empty());
  EXPECT_TRUE(engine_.IsWaiting(waiting));
  EXPECT_TRUE(Do(Softened{RequestId{99}}).empty());
  Do(Evicted{lease});
  ASSERT_FALSE(engine_.IsWaiting(waiting));
  EXPECT_TRUE(Do(Softened{waiting}).empty());
  const RequestId restore{++last_request_};
  Do(Restore{.request = restore,
             .session = SessionId{kB.value},
             .leases = {lease},
             .deadline = now_ + kSecond});
  ASSERT_TRUE(engine_.IsWaiting(restore));
  EXPECT_TRUE(Do(Softened{restore}).empty());
  EXPECT_TRUE(engine_.IsWaiting(restore));
}

}  // namespace
}  // namespace gmb::quota
