// The answers that requests get at once.
#include <limits>

#include "tests/quota/engine_fixture.h"

namespace gmb::quota {
namespace {

using AdmissionTest = EngineTest;
using ::testing::ElementsAre;

TEST_F(AdmissionTest, ARequestThatFitsIsGrantedAtOnce) {
  Take(kA, 60);
  EXPECT_THAT(Said(),
              ElementsAre("Granted request=1 lease=1 session=1 tenant=1 pool=1 "
                          "bytes=60 handles=1"));
  EXPECT_EQ(Pool().leased_bytes, 60u);
  EXPECT_EQ(Pool().free_to_borrow_bytes, 40u);
  EXPECT_EQ(engine_.Lease(LeaseId{1})->bytes, 60u);
}

TEST_F(AdmissionTest, BytesAreRoundedUpToTheGranularity) {
  Do(PoolSet{PoolId{2}, 1000, 64});
  Do(QuotaSet{PoolId{2}, kA, {Amount::Bytes(0), Amount::Fraction(1), 1}});
  const Effects effects = Do(Acquire{.request = RequestId{50},
                                     .session = SessionId{1},
                                     .tenant = kA,
                                     .pool = PoolId{2},
                                     .bytes = 65});
  EXPECT_EQ(std::get<Granted>(effects.at(0)).bytes, 128u);
  // 1,000 is no multiple either: the pool has 15 times 64.
  EXPECT_EQ(engine_.Pool(PoolId{2})->target_bytes, 960u);
}

TEST_F(AdmissionTest, NonsenseIsABadRequest) {
  Take(kA, 0);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kBadRequest, 0));
  Do(Acquire{.request = RequestId{9},
             .tenant = kA,
             .pool = kPool,
             .bytes = 1,
             .handles = 0});
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kBadRequest, 0));
}

TEST_F(AdmissionTest, UnknownTenantsAndPoolsAreNamedAsSuch) {
  Take(TenantId{77}, 1);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kNoSuchTenant, 0));
  Do(Acquire{
      .request = RequestId{9}, .tenant = kA, .pool = PoolId{9}, .bytes = 1});
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kNoSuchPool, 0));
}

TEST_F(AdmissionTest, AboveTheLimitForEverIsDeniedAtOnceEvenIfItWouldWait) {
  SetQuota(kA, 0, 60);
  Wait(kA, 61);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTenantLimit, 1));
  EXPECT_EQ(OnlyDenied().retry_after.count(), 0);  // trying again does not help
  Wait(kA, std::numeric_limits<uint64_t>::max());
  EXPECT_THAT(OnlyDenied(),
              IsDenied(Reason::kTenantLimit,
                       std::numeric_limits<uint64_t>::max() - 60));
  Wait(kA, uint64_t{1} << 63);
  EXPECT_THAT(OnlyDenied(),
              IsDenied(Reason::kTenantLimit, (uint64_t{1} << 63) - 60));
}

TEST_F(AdmissionTest, AboveTheLimitForNowIsDeniedOnlyWithoutWaiting) {
  SetQuota(kA, 0, 60);
  Take(kA, 50);
  EXPECT_FALSE(Take(kA, 11));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTenantLimit, 1));
  EXPECT_EQ(OnlyDenied().retry_after, kSecond);
  EXPECT_TRUE(engine_.IsWaiting(Wait(kA, 11)));
}

TEST_F(AdmissionTest, ATenantWithoutAQuotaHasALimitOfZero) {
  Do(TenantSet{.tenant = TenantId{4}});
  EXPECT_FALSE(Take(TenantId{4}, 5));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTenantLimit, 5));
}

TEST_F(AdmissionTest, AFullPoolIsExhaustedWithoutWaiting) {
  Take(kA, 90);
  EXPECT_FALSE(Take(kB, 25));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 15));
  EXPECT_EQ(OnlyDenied().retry_after, kSecond);
  EXPECT_TRUE(Take(kB, 10));
}

TEST_F(AdmissionTest, NobodyBorrowsWhatOthersAreGuaranteed) {
  SetQuota(kB, 40, 100);
  EXPECT_TRUE(Take(kA, 60));
  EXPECT_FALSE(Take(kC, 1));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 1));
  EXPECT_TRUE(Take(kB, 40));  // always
}

TEST_F(AdmissionTest,
       AboveWhatTheGuaranteesOfOthersLeaveIsOvercommittedAtOnce) {
  SetQuota(kB, 40, 100);
  Wait(kA, 61);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kOvercommitted, 1));
  EXPECT_EQ(OnlyDenied().retry_after.count(), 0);
  Take(kA, 50);
  Wait(kA, 20);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kOvercommitted, 10));
}

TEST_F(AdmissionTest, ARequestMayReachBeyondItsGuaranteeWithBytesThatAreFree) {
  SetQuota(kA, 30, 100);
  Take(kB, 60);
  EXPECT_FALSE(Take(kA, 41));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 1));
  EXPECT_TRUE(Take(kA, 40));
  EXPECT_EQ(View(kA).borrowed_bytes, 10u);
}

TEST_F(AdmissionTest, UnreturnedBytesCountAsHeldAndAgainstTheLimit) {
  SetQuota(kA, 0, 50);
  Do(UnreturnedChanged{kPool, kA, 30});
  EXPECT_EQ(View(kA).borrowed_bytes, 30u);
  EXPECT_EQ(Pool().free_to_borrow_bytes, 70u);
  EXPECT_FALSE(Take(kA, 21));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTenantLimit, 1));
  EXPECT_TRUE(Take(kA, 20));
  EXPECT_FALSE(Take(kB, 51));
  Do(UnreturnedChanged{kPool, kA, 0});
  EXPECT_TRUE(Take(kB, 51));
  EXPECT_TRUE(Take(kA, 29));
}

TEST_F(AdmissionTest, HandlesAreLimitedPerTenantAndForAll) {
  engine_ = Engine({.max_handles = 5});
  SetUp();
  Do(TenantSet{.tenant = kA, .max_handles = 3});
  const auto acquire = [&](TenantId tenant, uint32_t handles) {
    Do(Acquire{.request = RequestId{++last_request_},
               .tenant = tenant,
               .pool = kPool,
               .bytes = 1,
               .handles = handles,
               .deadline = now_ + kSecond});
    return LeaseOf(RequestId{last_request_});
  };
  acquire(kA, 4);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTooManyHandles, 0));
  EXPECT_EQ(OnlyDenied().retry_after.count(), 0);
  const auto two = acquire(kA, 2);
  ASSERT_TRUE(two);
  acquire(kA, 2);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTooManyHandles, 0));
  EXPECT_EQ(OnlyDenied().retry_after, kSecond);
  EXPECT_TRUE(acquire(kB, 3));
  EXPECT_FALSE(acquire(kC, 1));
  Release(two);
  EXPECT_EQ(engine_.handles(), 3u);
  EXPECT_TRUE(acquire(kC, 2));
}

TEST_F(AdmissionTest, ADrainingPoolGrantsNothingUntilItIsBack) {
  const auto lease = Take(kA, 100);
  const RequestId waiting = Wait(kB, 10);
  Do(PoolDrain{kPool, true});
  EXPECT_EQ(OnlyDenied().request, waiting);
  EXPECT_EQ(OnlyDenied().reason, Reason::kDraining);
  Release(lease);
  EXPECT_FALSE(Take(kA, 1));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kDraining, 0));
  EXPECT_EQ(View(kA).obtainable_bytes, 0u);
  Do(PoolDrain{kPool, false});
  EXPECT_TRUE(Take(kA, 1));
}

TEST_F(AdmissionTest, AFailedGrantGivesItsBytesBackOnce) {
  const auto lease = Take(kA, 100);
  Do(MissingChanged{kPool, 10});
  Do(GrantFailed{*lease});
  EXPECT_EQ(Pool().leased_bytes, 0u);
  EXPECT_TRUE(Do(GrantFailed{*lease}).empty());
  EXPECT_TRUE(Do(Released{*lease}).empty());
  EXPECT_FALSE(Take(kA, 91));
  EXPECT_TRUE(Take(kA, 90));
}

TEST_F(AdmissionTest, ObtainableIsWhatARequestWithoutWaitingGets) {
  SetQuota(kA, 30, 80);
  SetQuota(kB, 20, 100);
  EXPECT_EQ(View(kA).obtainable_bytes, 80u);
  Take(kC, 25);
  EXPECT_EQ(View(kA).obtainable_bytes, 55u);
  EXPECT_FALSE(Take(kA, 56));
  EXPECT_TRUE(Take(kA, 55));
  EXPECT_EQ(View(kA).obtainable_bytes, 0u);
  EXPECT_EQ(View(kB).obtainable_bytes, 20u);
}

}  // namespace
}  // namespace gmb::quota
