// Soft and evicted bytes, restores and pauses: an example for each rule.
#include <gtest/gtest.h>

#include "tests/quota/engine_fixture.h"

namespace gmb::quota {
namespace {

using ::testing::ElementsAre;

class RestoreTest : public EngineTest {
 protected:
  static constexpr PoolId kOther{2};

  std::optional<LeaseId> Soft(TenantId tenant, uint64_t bytes,
                              PoolId pool = kPool) {
    Do(Acquire{.request = RequestId{++last_request_},
               .session = SessionId{tenant.value},
               .tenant = tenant,
               .pool = pool,
               .bytes = bytes,
               .deadline = now_,
               .hard = false});
    return LeaseOf(RequestId{last_request_});
  }
  std::vector<std::string> Back(TenantId tenant, std::vector<LeaseId> leases,
                                Nanoseconds wait = Nanoseconds(0)) {
    Do(Restore{.request = RequestId{++last_request_},
               .session = SessionId{tenant.value},
               .leases = std::move(leases),
               .deadline = now_ + wait});
    return Said();
  }
  void Evict(std::optional<LeaseId> lease) { Do(Evicted{lease.value()}); }
};

TEST_F(RestoreTest, SoftBytesMayBorrowUnusedGuaranteesAndHardOnesMayNot) {
  SetQuota(kA, 60, 100);
  EXPECT_FALSE(Take(kB, 50));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kOvercommitted, 10));
  EXPECT_TRUE(Soft(kB, 90));
  EXPECT_EQ(Pool().hard_bytes, 0u);
  EXPECT_EQ(Pool().free_to_borrow_bytes, 40u);
}

TEST_F(RestoreTest, AGuaranteeWaitsForReclaimAndNobodyBorrowsMeanwhile) {
  SetQuota(kA, 60, 100);
  const auto lease = Soft(kB, 90);
  const RequestId request = Wait(kA, 60);
  const auto shortage = engine_.NextShortage(kPool, 0);
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->request, request);
  EXPECT_EQ(shortage->lacking_bytes, 50u);
  EXPECT_TRUE(shortage->within_guarantee);
  EXPECT_FALSE(engine_.NextShortage(kPool, 50));  // it is under way
  EXPECT_FALSE(Soft(kC, 5));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 55));
  EXPECT_TRUE(OnlyDenied().claimed);
  Evict(lease);
  EXPECT_THAT(GrantedRequests(), ElementsAre(request));
}

TEST_F(RestoreTest, EvictedLeasesCountAgainstTheLimitAndNotOnTheDevice) {
  SetQuota(kB, 0, 90);
  const auto lease = Soft(kB, 80);
  Evict(lease);
  EXPECT_EQ(View(kB).leased_bytes, 80u);
  EXPECT_EQ(View(kB).resident_bytes, 0u);
  EXPECT_EQ(Pool().charged_bytes, 0u);
  EXPECT_FALSE(Soft(kB, 20));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTenantLimit, 10));
  EXPECT_THAT(Back(kB, {*lease}),
              ElementsAre("Restored request=3 session=2 tenant=2 bytes=80"));
  EXPECT_EQ(View(kB).resident_bytes, 80u);
}

TEST_F(RestoreTest, ARestoreWaitsForItsTurnAndIsWhole) {
  const auto one = Soft(kA, 30), two = Soft(kA, 30);
  Evict(one);
  Evict(two);
  const auto lease = Soft(kB, 50);
  EXPECT_THAT(Back(kA, {*one, *two}, kSecond),
              ElementsAre("Waiting request=4 ahead=0"));
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->lacking_bytes, 10u);
  Evict(lease);
  EXPECT_THAT(Said(),
              ElementsAre("Restored request=4 session=1 tenant=1 bytes=60"));
}

TEST_F(RestoreTest, ALimitLoweredMeanwhileIsSaidAtTheGate) {
  const auto lease = Soft(kA, 50);
  Evict(lease);
  SetQuota(kA, 0, 40);
  Back(kA, {*lease}, kSecond);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTenantLimit, 10));
  Release(lease);  // allowed while closed
  EXPECT_EQ(View(kA).leased_bytes, 0u);
}

TEST_F(RestoreTest, BothPoolsOrNeitherAndATurnInOneIsEnough) {
  Do(PoolSet{kOther, 100, 1});
  for (const TenantId tenant : {kA, kB, kC}) {
    Do(QuotaSet{kOther, tenant, {{}, Amount::Bytes(100), 1}});
  }
  const auto here = Soft(kA, 60), there = Soft(kA, 60, kOther);
  Evict(here);
  Evict(there);
  const auto b = Soft(kB, 60), c = Soft(kC, 60, kOther);
  EXPECT_THAT(Back(kA, {*here, *there}, 10 * kSecond),
              ElementsAre("Waiting request=5 ahead=0"));
  Evict(b);
  EXPECT_THAT(Said(), ElementsAre());
  EXPECT_EQ(engine_.Pool(kPool)->charged_bytes, 0u);
  Evict(c);
  EXPECT_THAT(Said(),
              ElementsAre("Restored request=5 session=1 tenant=1 bytes=120"));
}

TEST_F(RestoreTest, ALeaseEvictedMeanwhileJoins) {
  const auto one = Soft(kA, 30), two = Soft(kA, 30);
  const auto b = Soft(kB, 40);
  Evict(one);
  Soft(kC, 30);
  Back(kA, {*one}, kSecond);
  Evict(two);
  EXPECT_THAT(Said(), ElementsAre());  // 60 are needed now, 30 are free
  Evict(b);
  EXPECT_THAT(Said(),
              ElementsAre("Restored request=5 session=1 tenant=1 bytes=60"));
}

TEST_F(RestoreTest, ASharedLeaseComesBackOnlyForWhoNamesIt) {
  const auto own = Soft(kA, 30), shared = Soft(kA, 30);
  const auto b = Soft(kB, 40);
  Do(Shared{*shared});
  Evict(own);
  Soft(kC, 30);
  Back(kA, {*own}, kSecond);
  Evict(shared);
  EXPECT_THAT(Said(),
              ElementsAre("Restored request=5 session=1 tenant=1 bytes=30"));
  EXPECT_TRUE(engine_.Lease(*shared)->evicted);
  Evict(b);
  EXPECT_THAT(Back(kB, {*b, *shared}),
              ElementsAre("Denied request=6 session=2 BAD_REQUEST deficit=0"));
  EXPECT_THAT(Back(kA, {*shared}),
              ElementsAre("Restored request=7 session=1 tenant=1 bytes=30"));
}

TEST_F(RestoreTest, SharingALeaseThatIsWaitedForKeepsTheWait) {
  const auto own = Soft(kA, 30), shared = Soft(kA, 30);
  Soft(kB, 40);
  Evict(shared);
  Soft(kC, 30);
  Back(kA, {*shared}, kSecond);
  Do(Shared{*shared});
  Evict(own);  // does not join
  EXPECT_THAT(Said(),
              ElementsAre("Restored request=5 session=1 tenant=1 bytes=30"));
  EXPECT_TRUE(engine_.Lease(*own)->evicted);
}

TEST_F(RestoreTest, WhatIsReleasedMeanwhileIsLeftOut) {
  const auto one = Soft(kA, 30), two = Soft(kA, 30);
  Evict(one);
  Evict(two);
  Soft(kB, 60);
  Back(kA, {*one, *two}, kSecond);
  Release(one);
  EXPECT_THAT(Said(),
              ElementsAre("Restored request=4 session=1 tenant=1 bytes=30"));
}

TEST_F(RestoreTest, ADrainServesTheRestoresThatWaitedBehindWhatItDenies) {
  const auto lease = Soft(kA, 30);
  Evict(lease);
  Soft(kB, 60);
  Advance(kSecond);
  Wait(kC, 90);
  Advance(kSecond);  // it may no longer be passed
  Back(kA, {*lease}, kSecond);
  Do(PoolDrain{kPool, true});
  EXPECT_THAT(Said(),
              ElementsAre("Denied request=3 session=30 DRAINING deficit=0",
                          "Restored request=4 session=1 tenant=1 bytes=30"));
}

TEST_F(RestoreTest, BadRestoresAreRefused) {
  const auto a = Soft(kA, 30), b = Soft(kB, 30);
  EXPECT_THAT(Back(kA, {*a, LeaseId{77}}),
              ElementsAre("Restored request=3 session=1 tenant=0 bytes=0"));
  Evict(a);
  Evict(b);
  Back(kA, {*a, *b});
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kBadRequest, 0));
  Soft(kC, 90);
  Back(kA, {*a}, kSecond);
  Back(kA, {*a}, kSecond);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kBadState, 0));
}

TEST_F(RestoreTest, ASessionThatIsPausedDoesNotWaitToBorrow) {
  SetQuota(kA, 10, 100);
  Soft(kB, 100);
  const RequestId within = Wait(kA, 10), above = Wait(kA, 20);
  Do(SessionPausing{SessionId{10}, true});
  EXPECT_THAT(Said(), ElementsAre("Denied request=3 session=10 POOL_EXHAUSTED "
                                  "deficit=20 pausing"));
  EXPECT_TRUE(engine_.IsWaiting(within));
  EXPECT_FALSE(engine_.IsWaiting(above));
  Wait(kA, 30);
  EXPECT_TRUE(OnlyDenied().pausing);
  Do(SessionPausing{SessionId{10}, false});
  Wait(kA, 30);
  EXPECT_EQ(engine_.waiting(), 2u);
}

TEST_F(RestoreTest, ALeaseThatBecomesHardMayBreakTheSum) {
  SetQuota(kA, 60, 100);
  const auto lease = Soft(kB, 50);
  EXPECT_EQ(engine_.Check(HardChanged{*lease, true}),
            (Refusal{Reason::kOvercommitted, 10}));
  SetQuota(kA, 50, 100);
  EXPECT_EQ(engine_.Check(HardChanged{*lease, true}), std::nullopt);
  SetQuota(kA, 60, 100);
  Do(HardChanged{*lease, true});
  EXPECT_EQ(Pool().broken_bytes, 10u);
  Do(HardChanged{*lease, false});
  EXPECT_EQ(Pool().broken_bytes, 0u);
}

TEST_F(RestoreTest, ARaisedGuaranteeIsInForceAtOnceWhereOthersAreSoft) {
  Soft(kB, 100);
  SetQuota(kA, 60, 100);
  EXPECT_THAT(Said(), ::testing::Contains("QuotaApplied pool=1 tenant=1"));
  const auto hard = Take(kC, 40);
  EXPECT_FALSE(hard);  // nothing is free
}

TEST_F(RestoreTest, AShrinkIsPendingUntilWhatIsResidentHasGone) {
  const auto lease = Soft(kB, 80);
  Do(PoolSet{kPool, 50, 1});
  EXPECT_THAT(Said(), ::testing::Contains("PoolPending pool=1 remaining=30"));
  EXPECT_FALSE(Soft(kC, 10));
  Evict(lease);
  EXPECT_THAT(Said(), ::testing::Contains("PoolApplied pool=1"));
}

TEST_F(RestoreTest, NobodyIsEvictedForBytesThatAreMissing) {
  SetQuota(kA, 40, 100);
  SetQuota(kC, 40, 100);
  Take(kC, 40);
  Soft(kB, 30);
  Do(MissingChanged{kPool, 30});
  Wait(kA, 40);
  // 40 are lacking; 10 of them because 30 are missing of what is promised.
  EXPECT_EQ(Pool().broken_bytes, 10u);
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->lacking_bytes, 30u);
}

TEST_F(RestoreTest, TheHeadCollectsOnceItMayNoLongerBePassed) {
  Soft(kB, 90);
  Wait(kA, 50);
  const auto shortage = engine_.NextShortage(kPool, 0);
  ASSERT_TRUE(shortage);
  EXPECT_FALSE(shortage->within_guarantee);
  EXPECT_EQ(shortage->lacking_bytes, 40u);
  EXPECT_EQ(shortage->collects_from, now_ + kSecond);
}

}  // namespace
}  // namespace gmb::quota
