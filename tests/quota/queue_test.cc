// Which requests wait, for how long, and which is served first.
#include "tests/quota/engine_fixture.h"

namespace gmb::quota {
namespace {

using QueueTest = EngineTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(QueueTest, AWaitingRequestIsGrantedWhenBytesComeBack) {
  const auto lease = Take(kA, 80);
  const RequestId waiting = Wait(kB, 40);
  EXPECT_THAT(Said(), ElementsAre("Waiting request=2 ahead=0"));
  EXPECT_EQ(View(kB).waiting_bytes, 40u);
  Release(lease);
  EXPECT_THAT(GrantedRequests(), ElementsAre(waiting));
  EXPECT_EQ(engine_.waiting(), 0u);
}

TEST_F(QueueTest, ItIsGrantedWholeOrNotAtAll) {
  const auto first = Take(kA, 50);
  const auto second = Take(kA, 50);
  const RequestId waiting = Wait(kB, 60);
  Release(first);
  EXPECT_THAT(GrantedRequests(), IsEmpty());
  EXPECT_EQ(View(kB).leased_bytes, 0u);
  Release(second);
  EXPECT_THAT(GrantedRequests(), ElementsAre(waiting));
}

TEST_F(QueueTest, TheDeadlineEndsTheWaitWithTheDeficit) {
  Take(kA, 80);
  const RequestId waiting = Wait(kB, 40, kSecond);
  EXPECT_EQ(engine_.NextDeadline(), Instant{} + kSecond);
  Advance(kSecond - Nanoseconds(1));
  EXPECT_TRUE(Do(Tick{}).empty());
  Advance(Nanoseconds(1));
  Do(Tick{});
  EXPECT_EQ(OnlyDenied().request, waiting);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 20));
  EXPECT_EQ(engine_.NextDeadline(), std::nullopt);
}

TEST_F(QueueTest, AnExpiredRequestIsNotGrantedByALateRelease) {
  const auto lease = Take(kA, 80);
  Wait(kB, 40, kSecond);
  Advance(2 * kSecond);
  Release(lease);
  EXPECT_EQ(OnlyDenied().reason, Reason::kPoolExhausted);
  EXPECT_THAT(GrantedRequests(), IsEmpty());
}

// It would have them if it asked again at once.
TEST_F(QueueTest, ARequestAtItsDeadlineGetsWhatOneThatExpiresBeforeItKeptBack) {
  Take(kA, 60);
  const RequestId big = Wait(kB, 50, 3 * kSecond);
  Advance(kSecond);
  const RequestId small = Wait(kC, 30, 2 * kSecond);  // may no longer pass
  EXPECT_TRUE(engine_.IsWaiting(small));
  Advance(2 * kSecond);
  Do(Tick{});
  EXPECT_EQ(OnlyDenied().request, big);
  EXPECT_THAT(GrantedRequests(), ElementsAre(small));
}

TEST_F(QueueTest, CancelWithdrawsOnceAndLetsOthersOn) {
  Take(kA, 60);
  Advance(2 * kSecond);
  const RequestId big = Wait(kB, 50);
  Advance(kSecond);
  const RequestId small = Wait(kC, 30);  // fits, but may no longer pass
  EXPECT_TRUE(engine_.IsWaiting(small));
  Do(Cancel{big});
  EXPECT_EQ(OnlyDenied().request, big);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kCancelled, 0));
  EXPECT_THAT(GrantedRequests(), ElementsAre(small));
  EXPECT_TRUE(Do(Cancel{big}).empty());
  EXPECT_TRUE(Do(Cancel{small}).empty());
}

TEST_F(QueueTest, AClosedSessionWaitsForNothingButKeepsItsLeasesUntilReleased) {
  const auto lease = Take(kA, 100);
  const RequestId waiting = Wait(kB, 40);
  Do(SessionClosed{SessionId{10 * kB.value}});
  EXPECT_EQ(OnlyDenied().request, waiting);
  EXPECT_EQ(engine_.waiting(), 0u);
  Do(SessionClosed{SessionId{kA.value}});
  EXPECT_TRUE(last_.empty());
  EXPECT_EQ(View(kA).leased_bytes, 100u);
  Release(lease);
  EXPECT_EQ(View(kA).leased_bytes, 0u);
}

TEST_F(QueueTest, LowestBorrowedOverWeightIsServedFirst) {
  Take(kA, 10);
  Take(kB, 20);
  const auto rest = Take(kC, 70);
  SetQuota(kB, 0, 100, 4);  // 20 / 4 is less than 10 / 1
  const RequestId a = Wait(kA, 35);
  const RequestId b = Wait(kB, 35);
  Release(rest);
  EXPECT_THAT(GrantedRequests(), ElementsAre(b, a));
}

TEST_F(QueueTest, TheSurplusFollowsTheWeights) {
  SetQuota(kA, 0, 100, 3);
  SetQuota(kB, 0, 100, 1);
  const auto all = Take(kC, 100);
  for (int i = 0; i < 20; ++i) {
    Wait(kA, 5);
    Wait(kB, 5);
  }
  Release(all);
  EXPECT_EQ(View(kA).leased_bytes, 75u);
  EXPECT_EQ(View(kB).leased_bytes, 25u);
}

TEST_F(QueueTest, EqualsAreServedInTheOrderOfArrival) {
  const auto all = Take(kC, 100);
  const RequestId b = Wait(kB, 60);
  const RequestId a = Wait(kA, 60);
  EXPECT_THAT(Said(), ElementsAre("Waiting request=3 ahead=1"));
  Release(all);
  EXPECT_THAT(GrantedRequests(), ElementsAre(b));
  EXPECT_TRUE(engine_.IsWaiting(a));
}

TEST_F(QueueTest, ABlockedHeadLetsSmallerOnesPassForOneSecond) {
  Take(kA, 60);
  const RequestId head = Wait(kB, 50);
  EXPECT_TRUE(Take(kC, 10));
  Advance(kSecond - Nanoseconds(1));
  EXPECT_TRUE(Take(kC, 10));
  Advance(Nanoseconds(1));
  EXPECT_FALSE(Take(kC, 10));
  // 20 are free, and 50 of them are claimed.
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 40));
  EXPECT_TRUE(OnlyDenied().claimed);
  const RequestId later = Wait(kC, 10);
  Do(Cancel{head});
  EXPECT_THAT(GrantedRequests(), ElementsAre(later));
}

TEST_F(QueueTest, TheSecondIsNotGivenAgain) {
  Take(kA, 60);
  const RequestId head = Wait(kB, 50);
  Advance(kSecond);
  // C comes before B now, is blocked too and has a second of its own; B still
  // may not be passed.
  const auto borrowed = Take(kB, 1);
  EXPECT_FALSE(borrowed);
  const RequestId first = Wait(kC, 45);
  EXPECT_FALSE(Take(kA, 5));
  Do(Cancel{first});
  EXPECT_FALSE(Take(kA, 5));
  Do(Cancel{head});
  EXPECT_TRUE(Take(kA, 5));
}

TEST_F(QueueTest, ARequestOfATenantThatBorrowsLessComesBeforeTheHeadAtAnyTime) {
  Take(kA, 10);
  Take(kB, 50);
  Wait(kB, 50);
  Advance(kSecond);
  EXPECT_FALSE(Take(kB, 5));
  EXPECT_TRUE(
      Take(kA, 5));  // 10 borrowed against 50: it does not pass, it precedes
}

TEST_F(QueueTest, WithinTheGuaranteePassesAnyHead) {
  SetQuota(kA, 30, 100);
  const auto lease = Take(kC, 60);
  Wait(kB, 60);
  Advance(kSecond);
  EXPECT_FALSE(Take(kC, 5));
  EXPECT_TRUE(Take(kA, 30));
  Release(lease);
}

TEST_F(QueueTest, OneBlockedByItsOwnLimitBlocksNobody) {
  SetQuota(kA, 0, 50);
  const auto lease = Take(kA, 50);
  const RequestId own = Wait(kA, 20);
  Advance(2 * kSecond);
  EXPECT_TRUE(Take(kB, 30));
  Release(lease);
  EXPECT_THAT(GrantedRequests(), ElementsAre(own));
}

TEST_F(QueueTest,
       OneBlockedByItsOwnLimitIsPassedByItsTenantsNextEvenBehindAHead) {
  SetQuota(kB, 0, 30);
  Take(kB, 10);
  const auto some = Take(kC, 26);
  Take(kC, 64);
  const RequestId head = Wait(kA, 40);
  const RequestId above_limit = Wait(kB, 25);
  const RequestId within_limit = Wait(kB, 15);
  Release(some);
  EXPECT_THAT(GrantedRequests(), ElementsAre(within_limit));
  EXPECT_TRUE(engine_.IsWaiting(head));
  EXPECT_TRUE(engine_.IsWaiting(above_limit));
}

TEST_F(QueueTest, OneBlockedByItsOwnLimitExpiresWithThatReason) {
  SetQuota(kA, 0, 50);
  Take(kA, 50);
  Wait(kA, 20, kSecond);
  Advance(kSecond);
  Do(Tick{});
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTenantLimit, 20));
}

TEST_F(QueueTest,
       ASmallerRequestOfTheSameTenantMayNotPassItsOwnOlderOneForEver) {
  Take(kA, 60);
  const RequestId older = Wait(kB, 50);
  EXPECT_TRUE(Take(kB, 5));
  Advance(kSecond);
  EXPECT_FALSE(Take(kB, 5));
  EXPECT_TRUE(engine_.IsWaiting(older));
}

TEST_F(QueueTest, ARequestThatWaitsCannotTakeMoreHandlesThanThereAre) {
  engine_ = Engine({.max_handles = 2});
  SetUp();
  const auto all = Take(kA, 100);
  const RequestId one = Wait(kB, 50);
  const RequestId two = Wait(kC, 50);
  Do(TenantSet{.tenant = kB, .max_handles = 0});
  Release(all);
  EXPECT_EQ(OnlyDenied().request, one);
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kTooManyHandles, 0));
  EXPECT_THAT(GrantedRequests(), ElementsAre(two));
}

TEST_F(QueueTest, ARequestIdThatAlreadyWaitsIsIgnored) {
  Take(kA, 100);
  const RequestId waiting = Wait(kB, 10);
  Do(Acquire{.request = waiting,
             .session = SessionId{3},
             .tenant = kC,
             .pool = kPool,
             .bytes = 1});
  EXPECT_TRUE(last_.empty());
  EXPECT_EQ(engine_.waiting(), 1u);
}

TEST_F(QueueTest, TimeThatRunsBackwardsCountsAsTheLatestSeen) {
  Take(kA, 100);
  Advance(5 * kSecond);
  Wait(kB, 10, kSecond);
  now_ = Instant{};
  EXPECT_TRUE(Do(Tick{}).empty());
  EXPECT_FALSE(Take(kC, 1));
  // Its deadline is the past: it does not wait.
  Wait(kC, 1, kSecond);
  EXPECT_EQ(OnlyDenied().reason, Reason::kPoolExhausted);
}

TEST_F(QueueTest, ExplainSaysWhatStandsInTheWay) {
  SetQuota(kA, 20, 100);
  Take(kB, 70);
  Do(MissingChanged{kPool, 5});
  const RequestId first = Wait(kC, 10);
  const RequestId second = Wait(kC, 3);
  EXPECT_THAT(GrantedRequests(), ElementsAre(second));
  const Explanation why = *engine_.Explain(kC, kPool);
  ASSERT_EQ(why.waiting.size(), 1u);
  EXPECT_EQ(why.waiting[0].request, first);
  EXPECT_EQ(why.waiting[0].blocked_by, Reason::kPoolExhausted);
  EXPECT_EQ(why.waiting[0].deficit_bytes, 8u);
  ASSERT_EQ(why.borrowers.size(), 1u);
  EXPECT_EQ(why.borrowers[0].tenant, kB);
  EXPECT_EQ(why.borrowers[0].borrowed_bytes, 70u);
  EXPECT_EQ(why.kept_for_guarantees_bytes, 20u);
  EXPECT_EQ(why.missing_bytes, 5u);
  Wait(kB, 4);
  EXPECT_EQ(engine_.Explain(kB, kPool)->waiting_before, 1u);
  EXPECT_EQ(engine_.Explain(TenantId{9}, kPool), std::nullopt);
}

TEST_F(QueueTest, VeryManyThatExpireTogetherAreDeniedSomeAtATime) {
  Take(kA, 100);
  constexpr size_t kMany = 1000;
  for (size_t i = 0; i < kMany; ++i) Wait(kB, 10, kSecond);
  Advance(kSecond);
  size_t events = 0;
  for (; engine_.waiting() > 0; ++events) {
    ASSERT_LE(engine_.NextDeadline().value(), now_);
    const size_t denied = Do(Tick{}).size();
    ASSERT_GE(denied, 1u);
    ASSERT_LE(denied, 64u);
  }
  EXPECT_GE(events, kMany / 64);
}

}  // namespace
}  // namespace gmb::quota
