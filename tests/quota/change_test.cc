// Live changes of quotas and pools: applied, pending, refused; and bytes that
// are lost.
#include <limits>

#include "tests/quota/engine_fixture.h"

namespace gmb::quota {
namespace {

using ChangeTest = EngineTest;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(ChangeTest, AQuotaThatIsInForceAtOnceIsApplied) {
  SetQuota(kA, 30, 60);
  EXPECT_THAT(Said(), ElementsAre("QuotaApplied pool=1 tenant=1",
                                  "BudgetChanged pool=1 tenant=1"));
  EXPECT_EQ(View(kA).effective_guarantee_bytes, 30u);
  SetQuota(kA, 30, 60);  // nothing new
  EXPECT_THAT(Said(), ElementsAre("QuotaApplied pool=1 tenant=1"));
}

TEST_F(ChangeTest, GuaranteesAboveThePoolAreRefusedWithTheDeficit) {
  SetQuota(kA, 70, 100);
  SetQuota(kB, 40, 100);
  EXPECT_THAT(
      Said(),
      ElementsAre("QuotaRefused pool=1 tenant=2 OVERCOMMITTED deficit=10"));
  EXPECT_EQ(View(kB).requested_guarantee_bytes, 0u);
  const QuotaSet same{kPool, kB, {Amount::Bytes(40), Amount::Bytes(100), 1}};
  EXPECT_EQ(engine_.Check(same), (Refusal{Reason::kOvercommitted, 10}));
  SetQuota(kB, 30, 100);
  EXPECT_THAT(Said(), Contains("QuotaApplied pool=1 tenant=2"));
}

TEST_F(ChangeTest, QuotasThatMakeNoSenseAreBadRequests) {
  const auto refused = [&](TenantQuota quota) {
    return engine_.Check(QuotaSet{kPool, kA, quota});
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Refusal bad{Reason::kBadRequest, 0};
  EXPECT_EQ(refused({Amount::Fraction(nan), Amount::Bytes(9), 1}), bad);
  EXPECT_EQ(refused({Amount::Fraction(-0.1), Amount::Bytes(9), 1}), bad);
  EXPECT_EQ(refused({Amount::Bytes(0), Amount::Fraction(1.01), 1}), bad);
  EXPECT_EQ(refused({Amount::Bytes(0), Amount::Bytes(9), 0}), bad);
  EXPECT_EQ(refused({Amount::Bytes(0), Amount::Bytes(9), -1}), bad);
  EXPECT_EQ(refused({Amount::Bytes(0), Amount::Bytes(9), nan}), bad);
  EXPECT_EQ(refused({Amount::Bytes(9), Amount::Bytes(8), 1}),
            (Refusal{Reason::kBadRequest, 1}));
  EXPECT_EQ(refused({Amount::Bytes(0), Amount::Bytes(9), 1}), std::nullopt);
  EXPECT_EQ(engine_.Check(QuotaSet{PoolId{9}, kA, {}}),
            (Refusal{Reason::kNoSuchPool, 0}));
  SetQuota(TenantId{9}, 0, 1);
  EXPECT_THAT(
      Said(),
      ElementsAre("QuotaRefused pool=1 tenant=9 NO_SUCH_TENANT deficit=0"));
}

TEST_F(ChangeTest, AQuotaCanBeCheckedBeforeItsTenantIsMade) {
  SetQuota(kA, 70, 100);
  const auto check = [&](uint64_t guarantee) {
    return engine_.Check(QuotaSet{
        kPool, TenantId{9}, {Amount::Bytes(guarantee), Amount::Bytes(100), 1}});
  };
  EXPECT_EQ(check(30), std::nullopt);
  EXPECT_EQ(check(31), (Refusal{Reason::kOvercommitted, 1}));
}

TEST_F(ChangeTest,
       AGuaranteeWhoseBytesAreHeldByOthersIsPendingAndRisesAsTheyComeBack) {
  const auto first = Take(kB, 30);
  const auto second = Take(kB, 60);
  SetQuota(kA, 50, 100);
  EXPECT_THAT(Said(), ElementsAre("QuotaPending pool=1 tenant=1 remaining=40",
                                  "BudgetChanged pool=1 tenant=1"));
  EXPECT_EQ(View(kA).effective_guarantee_bytes, 10u);
  EXPECT_EQ(View(kA).requested_guarantee_bytes, 50u);
  Release(first);
  EXPECT_THAT(Said(), ElementsAre("BudgetChanged pool=1 tenant=1"));
  EXPECT_EQ(View(kA).effective_guarantee_bytes, 40u);
  Release(second);
  EXPECT_THAT(Said(), Contains("QuotaApplied pool=1 tenant=1"));
  EXPECT_EQ(View(kA).effective_guarantee_bytes, 50u);
  EXPECT_EQ(Pool().free_to_borrow_bytes, 50u);
}

TEST_F(ChangeTest, APendingGuaranteeComesBeforeThoseWhoWaitToBorrow) {
  const auto lease = Take(kB, 100);
  const RequestId waiting = Wait(kC, 60);
  SetQuota(kA, 50, 100);
  // With a guarantee of 50 elsewhere, 60 can never be borrowed.
  EXPECT_EQ(OnlyDenied().request, waiting);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kOvercommitted, 10));
  const RequestId smaller = Wait(kC, 50);
  Release(lease);
  EXPECT_EQ(View(kA).effective_guarantee_bytes, 50u);
  EXPECT_THAT(GrantedRequests(), ElementsAre(smaller));
}

TEST_F(ChangeTest, PendingGuaranteesRiseInTheOrderInWhichTheyWereAskedFor) {
  const auto first = Take(kC, 40);
  const auto second = Take(kC, 60);
  SetQuota(kA, 30, 100);
  SetQuota(kB, 30, 100);
  SetQuota(kA, 40, 100);  // asks for more: behind B now
  Release(first);
  EXPECT_EQ(View(kB).effective_guarantee_bytes, 30u);
  EXPECT_EQ(View(kA).effective_guarantee_bytes, 10u);
  Release(second);
  EXPECT_EQ(View(kA).effective_guarantee_bytes, 40u);
}

TEST_F(ChangeTest, AGuaranteeCoversWhatIsHeldAtOnce) {
  Take(kA, 60);
  Take(kB, 40);
  SetQuota(kA, 50, 100);
  EXPECT_THAT(Said(), Contains("QuotaApplied pool=1 tenant=1"));
  EXPECT_EQ(View(kA).borrowed_bytes, 10u);
}

TEST_F(ChangeTest, ALimitBelowWhatIsLeasedHoldsAtOnceAndIsPendingUntilDrained) {
  const auto first = Take(kA, 30);
  const auto second = Take(kA, 30);
  SetQuota(kA, 0, 40);
  EXPECT_THAT(Said(), Contains("QuotaPending pool=1 tenant=1 remaining=20"));
  EXPECT_EQ(View(kA).over_limit_bytes, 20u);
  EXPECT_FALSE(Take(kA, 1));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTenantLimit, 1));
  Release(first);
  EXPECT_THAT(Said(), ElementsAre("QuotaApplied pool=1 tenant=1"));
  EXPECT_TRUE(Take(kA, 10));
  Release(second);
}

TEST_F(ChangeTest, ALimitBelowWhatWaitsDeniesIt) {
  Take(kB, 100);
  const RequestId waiting = Wait(kA, 50);
  SetQuota(kA, 0, 49);
  EXPECT_EQ(OnlyDenied().request, waiting);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTenantLimit, 1));
}

TEST_F(ChangeTest, ARaisedLimitServesThoseWhoWaitedForIt) {
  SetQuota(kA, 0, 50);
  Take(kA, 40);
  const RequestId waiting = Wait(kA, 20);
  SetQuota(kA, 0, 60);
  EXPECT_THAT(GrantedRequests(), ElementsAre(waiting));
}

TEST_F(ChangeTest, FractionsFollowThePool) {
  Do(QuotaSet{kPool, kA, {Amount::Fraction(0.25), Amount::Fraction(0.5), 1}});
  EXPECT_EQ(View(kA).limit_bytes, 50u);
  Do(PoolSet{kPool, 200, 1});
  EXPECT_THAT(Said(), ElementsAre("PoolApplied pool=1",
                                  "BudgetChanged pool=1 tenant=1"));
  EXPECT_EQ(View(kA).effective_guarantee_bytes, 50u);
  EXPECT_EQ(View(kA).limit_bytes, 100u);
}

TEST_F(ChangeTest,
       AShrinkIsPendingWhileItsBytesAreLeasedAndGoesBeforeBorrowers) {
  SetQuota(kA, 20, 100);
  const auto first = Take(kB, 30);
  const auto second = Take(kB, 30);
  Do(PoolSet{kPool, 50, 1});
  EXPECT_THAT(Said(), Contains("PoolPending pool=1 remaining=30"));
  EXPECT_EQ(Pool().capacity_bytes, 80u);
  EXPECT_FALSE(Take(kC, 1));
  EXPECT_TRUE(Take(kA, 20));  // within the guarantee: always
  Release(first);
  EXPECT_THAT(Said(), ElementsAre("PoolApplied pool=1"));
  EXPECT_EQ(Pool().capacity_bytes, 50u);
  EXPECT_FALSE(Take(kC, 1));
  Release(second);
  EXPECT_TRUE(Take(kC, 30));
}

TEST_F(ChangeTest, AShrinkBelowTheGuaranteesIsRefused) {
  SetQuota(kA, 40, 100);
  Do(QuotaSet{kPool, kB, {Amount::Fraction(0.5), Amount::Fraction(1), 1}});
  Do(PoolSet{kPool, 70, 1});
  EXPECT_THAT(
      Said(),
      ElementsAre("PoolRefused pool=1 tenant=0 OVERCOMMITTED deficit=5"));
  EXPECT_EQ(Pool().target_bytes, 100u);
  Do(PoolSet{kPool, 80, 1});
  EXPECT_EQ(Pool().capacity_bytes, 80u);
}

TEST_F(ChangeTest,
       AShrinkThatPutsALimitBelowItsGuaranteeIsRefusedWithTheTenant) {
  Do(QuotaSet{kPool, kB, {Amount::Bytes(40), Amount::Fraction(0.5), 1}});
  Do(PoolSet{kPool, 60, 1});
  EXPECT_THAT(
      Said(),
      ElementsAre("PoolRefused pool=1 tenant=2 BAD_REQUEST deficit=10"));
}

TEST_F(ChangeTest, PoolsOfImpossibleSizesAreRefused) {
  const Refusal bad{Reason::kBadRequest, 0};
  EXPECT_EQ(engine_.Check(PoolSet{PoolId{2}, 100, 0}), bad);
  EXPECT_EQ(engine_.Check(PoolSet{PoolId{2}, kMaxPoolBytes + 1, 1}), bad);
  EXPECT_EQ(engine_.Check(PoolSet{kPool, 100, 2}), bad);
  EXPECT_EQ(engine_.Check(PoolSet{PoolId{2}, kMaxPoolBytes, 1 << 21}),
            std::nullopt);
}

TEST_F(ChangeTest, MissingBytesThatBreakTheSumStopBorrowersButNotGuarantees) {
  SetQuota(kA, 40, 100);
  Take(kB, 50);
  Do(MissingChanged{kPool, 30});
  EXPECT_EQ(Pool().broken_bytes, 20u);
  EXPECT_FALSE(Take(kC, 1));
  EXPECT_FALSE(Take(kA, 41));
  EXPECT_TRUE(Take(kA, 15));  // what is there
  const RequestId rest = Wait(kA, 15);
  EXPECT_TRUE(engine_.IsWaiting(rest));
  Do(MissingChanged{kPool, 15});
  EXPECT_THAT(GrantedRequests(), ElementsAre(rest));
  Do(MissingChanged{kPool, 0});
  EXPECT_EQ(Pool().broken_bytes, 0u);
  EXPECT_TRUE(Take(kC, 10));
}

TEST_F(ChangeTest, MissingBytesLowerWhatCanBeBorrowed) {
  Do(MissingChanged{kPool, 30});
  EXPECT_FALSE(Take(kA, 71));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kOvercommitted, 1));
  EXPECT_TRUE(Take(kA, 70));
}

TEST_F(ChangeTest, ReportedFiguresAboveAllReasonDoNoHarm) {
  Do(MissingChanged{kPool, std::numeric_limits<uint64_t>::max()});
  Do(UnreturnedChanged{kPool, kA, std::numeric_limits<uint64_t>::max()});
  EXPECT_FALSE(Take(kB, 1));
  Do(MissingChanged{kPool, 0});
  Do(UnreturnedChanged{kPool, kA, 0});
  EXPECT_TRUE(Take(kB, 100));
  EXPECT_TRUE(Do(MissingChanged{PoolId{9}, 1}).empty());
  EXPECT_TRUE(Do(UnreturnedChanged{kPool, TenantId{9}, 1}).empty());
}

TEST_F(ChangeTest, ATenantIsRemovedOnlyWhenItHoldsNothing) {
  SetQuota(kA, 40, 100);
  const auto lease = Take(kA, 10);
  Do(UnreturnedChanged{kPool, kA, 5});
  Do(TenantRemove{kA});
  EXPECT_THAT(Said(),
              ElementsAre("TenantRefused tenant=1 BAD_STATE deficit=15"));
  Release(lease);
  Do(UnreturnedChanged{kPool, kA, 0});
  Take(kB, 60);
  const RequestId waiting = Wait(kC, 40, kSecond);
  EXPECT_EQ(OnlyDenied().reason,
            Reason::kBadState);  // nothing was denied: it waits
  EXPECT_TRUE(engine_.IsWaiting(waiting));
  Do(TenantRemove{kA});
  EXPECT_THAT(GrantedRequests(), ElementsAre(waiting));
  EXPECT_EQ(engine_.TenantPool(kA, kPool), std::nullopt);
  Do(TenantRemove{kA});
  EXPECT_THAT(Said(),
              ElementsAre("TenantRefused tenant=1 NO_SUCH_TENANT deficit=0"));
}

TEST_F(ChangeTest, PoolsAreIndependent) {
  Do(PoolSet{PoolId{2}, 50, 1});
  EXPECT_EQ(engine_.TenantPool(kA, PoolId{2})->limit_bytes, 0u);
  Take(kA, 100);
  EXPECT_EQ(engine_.Pool(PoolId{2})->leased_bytes, 0u);
  EXPECT_THAT(engine_.Pools(), ElementsAre(PoolId{1}, PoolId{2}));
  EXPECT_THAT(engine_.Tenants(), ElementsAre(kA, kB, kC));
}

TEST_F(ChangeTest, TheWorkedExampleOfTheDocumentationIsTrue) {
  SetQuota(kA, 40, 80);
  const auto b = Take(kB, 50);
  EXPECT_EQ(Pool().free_to_borrow_bytes, 10u);
  Take(kC, 20);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 10));
  Wait(kC, 70);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kOvercommitted, 10));
  const RequestId c = Wait(kC, 20);
  EXPECT_TRUE(engine_.IsWaiting(c));
  EXPECT_TRUE(Take(kA, 40));
  Take(kA, 50);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTenantLimit, 10));
  const auto a = Take(kA, 10);
  EXPECT_EQ(Pool().free_to_borrow_bytes, 0u);
  Release(b);
  EXPECT_THAT(GrantedRequests(), ElementsAre(c));
  const auto c_lease = LeaseOf(c);
  EXPECT_EQ(Pool().free_to_borrow_bytes, 30u);
  SetQuota(kB, 60, 100);
  EXPECT_THAT(Said(), Contains("QuotaPending pool=1 tenant=2 remaining=30"));
  Release(a);
  EXPECT_EQ(View(kB).effective_guarantee_bytes, 40u);
  Release(c_lease);
  EXPECT_THAT(Said(), Contains("QuotaApplied pool=1 tenant=2"));
  EXPECT_EQ(Pool().free_to_borrow_bytes, 0u);
}

TEST(TenantQuotaTest, AWholeSetIsCheckedAsAValue) {
  const TenantQuota half{Amount::Fraction(0.5), Amount::Fraction(1), 1};
  const TenantQuota bytes{Amount::Bytes(30), Amount::Bytes(60), 1};
  EXPECT_EQ(CheckQuotas({half, bytes}, 100, 1), std::nullopt);
  const auto refused = CheckQuotas({half, bytes, bytes}, 100, 1);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->refusal, (Refusal{Reason::kOvercommitted, 10}));
  const auto wrong =
      CheckQuotas({half, {Amount::Bytes(9), Amount::Bytes(8), 1}}, 100, 1);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->index, 1u);
  EXPECT_EQ(wrong->refusal, (Refusal{Reason::kBadRequest, 1}));
}

TEST(AmountTest, ResolvesDownToTheGranularity) {
  EXPECT_EQ(Amount::Fraction(1.0 / 3).Resolve(100, 10), 30u);
  EXPECT_EQ(Amount::Bytes(39).Resolve(100, 10), 30u);
  EXPECT_EQ(Amount::Fraction(1).Resolve(kMaxPoolBytes, 1), kMaxPoolBytes);
  EXPECT_EQ(Amount::Bytes(~uint64_t{0}).Resolve(100, 1), kMaxPoolBytes);
  EXPECT_EQ(Amount::Fraction(2).Resolve(100, 1), 0u);
}

TEST(InstantTest, AdditionsSaturate) {
  EXPECT_EQ(Instant::Max() + Nanoseconds(1), Instant::Max());
  EXPECT_EQ((Instant{5} + Nanoseconds(-7)).ns, -2);
  EXPECT_EQ(Instant{5} - Instant{2}, Nanoseconds(3));
  EXPECT_EQ(Instant::Max() - Instant{-1}, Nanoseconds::max());
}

// The cost of a change has nothing to do with how many wait, unless it is they
// whom it makes impossible.
TEST_F(ChangeTest, WhoWaitsIsNotLookedAtForChangesThatLeaveHimPossible) {
  ASSERT_TRUE(Take(kA, 90).has_value());
  for (int i = 0; i < 100; ++i) Wait(kB, 20);
  for (int i = 0; i < 100; ++i) Wait(kC, 15);
  ASSERT_EQ(engine_.waiting(), 200u);
  SetQuota(kA, 50, 95);
  SetQuota(kB, 0, 20);
  Do(PoolSet{kPool, 98, 1});
  EXPECT_EQ(engine_.denial_looks(), 0u);
  SetQuota(kB, 0, 19);
  EXPECT_EQ(engine_.denial_looks(), 100u) << "its own alone";
  EXPECT_EQ(engine_.waiting(), 100u);
}

TEST_F(ChangeTest, AHardRequestBehindASoftOneIsFound) {
  ASSERT_TRUE(Take(kA, 100).has_value());
  const auto wait = [&](uint64_t request, uint64_t bytes, bool hard) {
    Do(Acquire{.request = RequestId{request},
               .session = SessionId{1},
               .tenant = kB,
               .pool = kPool,
               .bytes = bytes,
               .deadline = now_ + kSecond,
               .hard = hard});
  };
  wait(501, 60, /*hard=*/false);
  wait(502, 50, /*hard=*/true);
  SetQuota(kC, 60, 100);
  EXPECT_EQ(OnlyDenied().request, RequestId{502});
  EXPECT_TRUE(engine_.IsWaiting(RequestId{501}));
}

}  // namespace
}  // namespace gmb::quota
