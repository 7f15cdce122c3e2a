#include "quota/waiters.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace gmb::quota {
namespace {

using std::chrono::seconds;

constexpr Instant kStart;

class WaitersTest : public ::testing::Test {
 protected:
  // An Acquire of session 7 and tenant 3.
  const Waiter& Add(uint64_t request, Instant deadline) {
    return waiters_.Add({.asked = {.request = RequestId{request},
                                   .session = SessionId{7},
                                   .tenant = TenantId{3},
                                   .deadline = deadline,
                                   .parts = {{.pool = PoolId{1}, .ask = {}}},
                                   .leases = {},
                                   .sessions = {}},
                         .place = waiters_.NextPlace(),
                         .since = kStart},
                        kStart);
  }
  // A Restore of this lease, of the tenant and of the lease's session.
  void AddRestore(uint64_t request, uint64_t tenant, uint64_t lease,
                  uint64_t owner) {
    waiters_.Add({.asked = {.request = RequestId{request},
                            .session = SessionId{8},
                            .tenant = TenantId{tenant},
                            .deadline = Instant::Max(),
                            .parts = {{.pool = PoolId{2}, .ask = {}}},
                            .leases = {LeaseId{lease}},
                            .sessions = {SessionId{owner}}},
                  .place = waiters_.NextPlace(),
                  .since = kStart},
                 kStart);
  }

  Waiters waiters_;
};

TEST_F(WaitersTest, ExpireByDeadlineThenByArrival) {
  Add(1, kStart + seconds(5));
  Add(2, kStart + seconds(3));
  Add(3, kStart + seconds(3));
  EXPECT_EQ(waiters_.NextDeadline(), kStart + seconds(3));
  EXPECT_EQ(waiters_.Expired(kStart + seconds(2)), std::nullopt);
  EXPECT_EQ(waiters_.Expired(kStart + seconds(3)), RequestId{2});
  waiters_.Remove(RequestId{2});
  EXPECT_EQ(waiters_.Expired(kStart + seconds(9)), RequestId{3});
}

TEST_F(WaitersTest, NothingIsLeftOfOneThatIsRemoved) {
  Add(1, kStart + seconds(5));
  waiters_.BeginClaim(RequestId{1}, kStart + seconds(1), kStart);
  AddRestore(2, 3, 50, 9);
  const Waiter acquire = waiters_.Remove(RequestId{1});
  EXPECT_EQ(acquire.asked.session, SessionId{7});
  waiters_.Remove(RequestId{2});
  EXPECT_EQ(waiters_.size(), 0);
  EXPECT_EQ(waiters_.NextDeadline(), std::nullopt);
  EXPECT_TRUE(waiters_.OfSession(SessionId{7}).empty());
  EXPECT_EQ(waiters_.RestoreOf(LeaseId{50}), std::nullopt);
  EXPECT_EQ(waiters_.RestoreOf(SessionId{9}, TenantId{3}), std::nullopt);
}

TEST_F(WaitersTest, OneThatReturnsKeepsItsPlaceAndItsClaim) {
  Add(1, Instant::Max());
  Add(2, Instant::Max());
  waiters_.BeginClaim(RequestId{1}, kStart + seconds(1), kStart);
  Waiter first = waiters_.Remove(RequestId{1});
  waiters_.Add(std::move(first), kStart);
  EXPECT_EQ(waiters_.OfSession(SessionId{7}),
            (std::vector{RequestId{1}, RequestId{2}}));
  EXPECT_EQ(waiters_.NextDeadline(), kStart + seconds(1));
}

TEST_F(WaitersTest, FindARestoreByItsLeaseAndByTheLeasesSession) {
  AddRestore(1, 4, 50, 9);
  AddRestore(2, 3, 51, 9);
  AddRestore(3, 3, 52, 9);
  EXPECT_EQ(waiters_.RestoreOf(LeaseId{52}), RequestId{3});
  EXPECT_EQ(waiters_.RestoreOf(SessionId{9}, TenantId{3}), RequestId{2})
      << "the tenant's oldest";
  EXPECT_EQ(waiters_.RestoreOf(SessionId{8}, TenantId{3}), std::nullopt)
      << "the session that waits has no lease in it";
}

TEST_F(WaitersTest, AClaimTurnsWhenItComesToHoldAndAsksOnceForHowLong) {
  const Waiter& waiter = Add(1, Instant::Max());
  const Instant from = kStart + seconds(1);
  EXPECT_EQ(waiters_.BeginClaim(RequestId{1}, from, kStart), &waiter);
  EXPECT_EQ(waiters_.BeginClaim(RequestId{1}, from + seconds(1), kStart),
            nullptr)
      << "it has begun";
  int asked = 0;
  const auto hold = [&](const Request&) {
    ++asked;
    return Nanoseconds(seconds(2));
  };
  EXPECT_TRUE(waiters_.TurnClaims(kStart, hold).empty());
  EXPECT_EQ(waiters_.TurnClaims(from, hold), std::vector{PoolId{1}});
  EXPECT_EQ(waiters_.NextDeadline(), from + seconds(2));
  EXPECT_EQ(waiters_.TurnClaims(from + seconds(2), hold),
            std::vector{PoolId{1}});
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace gmb::quota
