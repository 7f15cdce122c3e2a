// Restores that begin to come back while the rest of their bytes are on their
// way (docs/quota.md): an example for each rule.
#include <gtest/gtest.h>

#include "tests/quota/engine_fixture.h"

namespace gmb::quota {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RestoreInPartTest : public EngineTest {
 protected:
  static constexpr PoolId kOther{2};

  LeaseId Soft(TenantId tenant, uint64_t bytes, PoolId pool = kPool) {
    Do(Acquire{.request = RequestId{++last_request_},
               .session = SessionId{tenant.value},
               .tenant = tenant,
               .pool = pool,
               .bytes = bytes,
               .deadline = now_,
               .hard = false});
    return LeaseOf(RequestId{last_request_}).value();
  }
  LeaseId Away(TenantId tenant, uint64_t bytes, PoolId pool = kPool) {
    const LeaseId lease = Soft(tenant, bytes, pool);
    Do(Evicted{lease});
    return lease;
  }
  RequestId Back(TenantId tenant, std::vector<LeaseId> leases) {
    Do(Restore{.request = RequestId{++last_request_},
               .session = SessionId{tenant.value},
               .leases = std::move(leases),
               .deadline = now_ + 100 * kSecond});
    return RequestId{last_request_};
  }
  std::vector<std::string> Leaving(uint64_t bytes, PoolId pool = kPool) {
    Do(BytesLeaving{pool, bytes});
    return Said();
  }
  bool IsBack(LeaseId lease) { return !engine_.Lease(lease)->evicted; }
};

TEST_F(RestoreInPartTest, WhatHasRoomComesBackAndTheRestFollows) {
  const LeaseId one = Away(kA, 30), two = Away(kA, 30);
  const LeaseId leaving = Soft(kB, 60);
  Back(kA, {one, two});
  EXPECT_THAT(Leaving(20), ElementsAre("Restored request=4 session=1 tenant=1 "
                                       "bytes=30 in part"));
  EXPECT_TRUE(IsBack(one));
  EXPECT_FALSE(IsBack(two));
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->lacking_bytes, 20u);
  EXPECT_THAT(Leaving(20), IsEmpty()) << "nothing more has room";
  Do(Evicted{leaving});
  EXPECT_THAT(Said(),
              ElementsAre("Restored request=4 session=1 tenant=1 bytes=30"));
}

TEST_F(RestoreInPartTest, NothingComesWhereMoreIsLacking) {
  const LeaseId one = Away(kA, 30), two = Away(kA, 30);
  Soft(kB, 60);
  Back(kA, {one, two});
  EXPECT_THAT(Leaving(19), IsEmpty());
  EXPECT_THAT(Leaving(0), IsEmpty());
  EXPECT_THAT(Leaving(100, kOther), IsEmpty()) << "there is no such pool";
}

// Each part costs a look at all of the leases.
TEST_F(RestoreInPartTest, ManyLeasesComeInFewParts) {
  std::vector<LeaseId> away, leaving;
  for (int i = 0; i < 100; ++i) away.push_back(Away(kA, 1));
  for (int i = 0; i < 100; ++i) leaving.push_back(Soft(kB, 1));
  const RequestId request = Back(kA, away);
  int parts = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    Do(Evicted{leaving[i]});
    if (engine_.IsWaiting(request)) parts += !Leaving(99 - i).empty();
  }
  EXPECT_FALSE(engine_.IsWaiting(request));
  EXPECT_GT(parts, 10);
  EXPECT_LT(parts, 60);
}

TEST_F(RestoreInPartTest, ALargeLeaseDoesNotHoldASmallOneUp) {
  const LeaseId large = Away(kA, 50), small = Away(kA, 20);
  Soft(kB, 70);
  Back(kA, {large, small});
  Leaving(40);
  EXPECT_FALSE(IsBack(large));
  EXPECT_TRUE(IsBack(small));
}

// It has borrowed by then what the other one has not.
TEST_F(RestoreInPartTest, ItKeepsItsTurn) {
  const LeaseId one = Away(kA, 10), two = Away(kA, 50);
  const LeaseId of_c = Away(kC, 30);
  const LeaseId leaving = Soft(kB, 80);
  const RequestId first = Back(kA, {one, two});
  const RequestId second = Back(kC, {of_c});
  Leaving(40);
  ASSERT_TRUE(IsBack(one));
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->request, first);
  Do(Evicted{leaving});
  EXPECT_TRUE(IsBack(two));
  EXPECT_FALSE(engine_.IsWaiting(second)) << "there is room for both";
}

TEST_F(RestoreInPartTest, AfterwardsWhatCameBackCountsAsBorrowed) {
  const LeaseId one = Away(kA, 10), two = Away(kA, 50);
  const LeaseId of_c = Away(kC, 30);
  Soft(kB, 80);
  const RequestId cancelled = Back(kA, {one, two});
  Leaving(40);
  ASSERT_TRUE(IsBack(one));
  Do(Cancel{cancelled});
  EXPECT_TRUE(IsBack(one));
  EXPECT_EQ(View(kA).resident_bytes, 10u);
  Back(kA, {two});
  const RequestId younger = Back(kC, {of_c});
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->request, younger);
}

// Its tenant holds as many bytes again, and these are borrowed.
TEST_F(RestoreInPartTest, WhatIsReleasedNoLongerCounts) {
  const LeaseId one = Away(kA, 10), two = Away(kA, 50);
  const LeaseId of_c = Away(kC, 30);
  Soft(kC, 5);
  Soft(kB, 75);
  Back(kA, {one, two});
  Leaving(40);
  ASSERT_TRUE(IsBack(one));
  Do(Released{one});
  Soft(kA, 10);
  const RequestId of_less = Back(kC, {of_c});
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->request, of_less);
}

// A lease that is taken meanwhile, and never came back for it.
TEST_F(RestoreInPartTest, AnotherThatJoinsDoesNotCostItItsTurn) {
  const LeaseId one = Away(kA, 10), two = Away(kA, 50);
  const LeaseId of_c = Away(kC, 30);
  const LeaseId stayed = Soft(kA, 10);
  SetQuota(kA, 10, 100);
  Soft(kB, 70);
  const RequestId first = Back(kA, {one, two});
  Leaving(40);
  ASSERT_TRUE(IsBack(one));
  Do(Evicted{stayed});
  const RequestId second = Back(kC, {of_c});
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->request, first);
  EXPECT_TRUE(engine_.IsWaiting(second));
}

TEST_F(RestoreInPartTest, OneThatIsTakenAgainJoinsAgain) {
  const LeaseId one = Away(kA, 30), two = Away(kA, 30);
  const LeaseId leaving = Soft(kB, 60);
  Back(kA, {one, two});
  Leaving(20);
  ASSERT_TRUE(IsBack(one));
  Do(Evicted{one});
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->lacking_bytes, 20u);
  EXPECT_EQ(View(kA).waiting_bytes, 60u);
  Do(Evicted{leaving});
  EXPECT_THAT(Said(),
              ElementsAre("Restored request=4 session=1 tenant=1 bytes=60"));
}

TEST_F(RestoreInPartTest, SharedOnesWaitForTheRest) {
  const LeaseId shared = Away(kA, 30), own = Away(kA, 20);
  Do(Shared{shared});
  Soft(kB, 60);
  Back(kA, {shared, own});
  Leaving(60);
  EXPECT_FALSE(IsBack(shared));
  EXPECT_TRUE(IsBack(own));
}

TEST_F(RestoreInPartTest, OneOfTwoPoolsIsWhole) {
  Do(PoolSet{kOther, 100, 1});
  Do(QuotaSet{kOther, kA, {{}, Amount::Bytes(100), 1}});
  const LeaseId here = Away(kA, 30), more = Away(kA, 30);
  const LeaseId there = Away(kA, 60, kOther);
  Soft(kB, 60);
  Back(kA, {here, more, there});
  EXPECT_THAT(Leaving(60), IsEmpty());
  EXPECT_FALSE(IsBack(here));
}

TEST_F(RestoreInPartTest, WithinAGuaranteeItComesBeforeThoseThatBorrow) {
  SetQuota(kA, 60, 100);
  const LeaseId one = Away(kA, 30), two = Away(kA, 30);
  const LeaseId leaving = Soft(kB, 60);
  Do(Acquire{.request = RequestId{++last_request_},
             .session = SessionId{kC.value},
             .tenant = kC,
             .pool = kPool,
             .bytes = 50,
             .deadline = now_ + 100 * kSecond,
             .hard = false});
  const RequestId borrows{last_request_};
  Back(kA, {one, two});
  Leaving(60);
  EXPECT_TRUE(IsBack(one));
  EXPECT_FALSE(IsBack(two));
  Do(Evicted{leaving});
  EXPECT_TRUE(IsBack(two));
  EXPECT_TRUE(engine_.IsWaiting(borrows));
}

// A Restore within its guarantee has its bytes here, and waits for others
// elsewhere.
TEST_F(RestoreInPartTest, WhatIsKeptForAGuaranteeIsLeftWhole) {
  Do(PoolSet{kOther, 100, 1});
  for (const TenantId tenant : {kA, kC})
    Do(QuotaSet{kOther, tenant, {{}, Amount::Bytes(100), 1}});
  const LeaseId here = Away(kA, 30), there = Away(kA, 60, kOther);
  Soft(kC, 60, kOther);
  SetQuota(kA, 30, 100);
  const LeaseId one = Away(kB, 20), two = Away(kB, 50);
  Soft(kC, 60);
  Back(kA, {here, there});
  Back(kB, {one, two});
  ASSERT_EQ(engine_.NextShortage(kPool, 0)->tenant, kB);
  EXPECT_THAT(Leaving(60), IsEmpty());
  EXPECT_FALSE(IsBack(one)) << "40 are free, and 30 of them are kept";
}

// The bytes that one before it claims are not given to it piece by piece.
TEST_F(RestoreInPartTest, AClaimIsLeftWhole) {
  const LeaseId one = Away(kA, 10), two = Away(kA, 60);
  Soft(kB, 60);
  Do(Acquire{.request = RequestId{++last_request_},
             .session = SessionId{kC.value},
             .tenant = kC,
             .pool = kPool,
             .bytes = 80,
             .deadline = now_ + 100 * kSecond,
             .hard = false});
  const RequestId first{last_request_};
  Advance(2 * kSecond);
  Do(Tick{});
  Back(kA, {one, two});
  ASSERT_EQ(engine_.NextShortage(kPool, 0)->request, first);
  EXPECT_THAT(Leaving(60), IsEmpty());
  EXPECT_FALSE(IsBack(one));
}

}  // namespace
}  // namespace gmb::quota
