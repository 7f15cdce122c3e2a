// An example for each rule of reclaim. Bytes are small numbers, times seconds.
#include "quota/planner.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace gmb::quota {
namespace {

constexpr PoolId kPool{1};
constexpr TenantId kA{1}, kB{2}, kC{3};
constexpr Nanoseconds kSecond = std::chrono::seconds(1);

class PlannerTest : public ::testing::Test {
 protected:
  PlannerTest() {
    for (const TenantId tenant : {kA, kB, kC}) {
      tenants_.push_back({.tenant = tenant, .pool = kPool});
    }
  }

  TenantRow& Tenant(TenantId tenant) { return tenants_[tenant.value - 1]; }

  // A parked lease of a session of its own, idle for so many seconds.
  LeaseRow& Add(TenantId tenant, uint64_t bytes, int64_t idle_seconds) {
    const uint64_t id = leases_.size() + 1;
    leases_.push_back({.lease = LeaseId{id},
                       .session = SessionId{id},
                       .tenant = tenant,
                       .pool = kPool,
                       .bytes = bytes,
                       .gate = Gate::kParked,
                       .host_room = true,
                       .idle_since = now_ + -(idle_seconds * kSecond)});
    Tenant(tenant).resident_bytes += bytes;
    return leases_.back();
  }

  // One of a session that should have unmapped it by now.
  LeaseRow& AddOverdue(TenantId tenant, uint64_t bytes) {
    LeaseRow& lease = Add(tenant, bytes, 90);
    lease.gate = Gate::kClosed;
    lease.busy = true;
    lease.unmap_deadline = now_;
    lease.owed_by_process = 1;
    return lease;
  }

  Demand Wants(Cause cause, TenantId tenant, uint64_t bytes) {
    return {.cause = cause,
            .tenant = tenant,
            .session = SessionId{99},
            .needs = {{kPool, bytes}},
            .deadline = now_ + 60 * kSecond};
  }

  const Plan& Make(const Demand& demand) {
    why_.clear();
    std::vector<LeaseVerdict> why;
    plan_ = MakePlan({leases_, tenants_, host_free_bytes_}, demand, now_,
                     options_, &why);
    for (const LeaseVerdict& entry : why) why_[entry.lease] = entry.verdict;
    return plan_;
  }
  const Plan& Borrow(uint64_t bytes) {
    return Make(Wants(Cause::kBorrow, kC, bytes));
  }
  const Plan& Within(uint64_t bytes) {
    return Make(Wants(Cause::kWithinGuarantee, kC, bytes));
  }

  std::vector<uint64_t> Victims() const {
    std::vector<uint64_t> ids;
    for (const Victim& victim : plan_.victims)
      ids.push_back(victim.lease.value);
    return ids;
  }
  Verdict Why(uint64_t lease) const { return why_.at(LeaseId{lease}); }

  Instant now_{1000 * kSecond.count()};
  PlannerOptions options_;
  std::vector<LeaseRow> leases_;
  std::vector<TenantRow> tenants_;
  uint64_t host_free_bytes_ = 0;
  Plan plan_;
  std::map<LeaseId, Verdict> why_;
};

using Ids = std::vector<uint64_t>;

TEST_F(PlannerTest, BackedOnesGoFirstThenTheLongestIdle) {
  Add(kA, 10, 50);
  Add(kA, 10, 90);
  Add(kB, 10, 20).backed_bytes = 10;
  Borrow(20);
  EXPECT_EQ(Victims(), (Ids{3, 2}));
  EXPECT_EQ(plan_.copy_bytes, 10u);
  EXPECT_EQ(plan_.short_bytes, 0u);
  EXPECT_EQ(Why(1), Verdict::kNotNeeded);
  EXPECT_EQ(Why(2), Verdict::kTaken);
}

// It would come and go for as long as somebody wants it.
TEST_F(PlannerTest, WhatIsComingBackIsLeftUntilItsSessionIsIn) {
  Add(kA, 10, 90);
  for (const Cause cause :
       {Cause::kBorrow, Cause::kOperator, Cause::kOverLimit, Cause::kPoolShrink,
        Cause::kPoolDrain, Cause::kTenantDelete}) {
    leases_[0].coming_until = now_ + 2 * kSecond;
    Make(Wants(cause, cause == Cause::kBorrow ? kC : kA, 10));
    EXPECT_EQ(Why(1), Verdict::kYoung) << static_cast<int>(cause);
    EXPECT_EQ(plan_.retry_at, now_ + 2 * kSecond) << static_cast<int>(cause);
    leases_[0].coming_until = now_;
    Make(Wants(cause, cause == Cause::kBorrow ? kC : kA, 10));
    EXPECT_EQ(Victims(), (Ids{1})) << static_cast<int>(cause);
  }
}

// It would be taken in the moment in which its gate opens, again and again.
TEST_F(PlannerTest, WhoTakesAllThatIsParkedLetsASessionIn) {
  Add(kA, 10, 90);
  leases_[0].let_in_until = now_ + kSecond;
  for (const Cause cause : {Cause::kPoolDrain, Cause::kTenantDelete}) {
    Make(Wants(cause, kA, 10));
    EXPECT_EQ(Why(1), Verdict::kYoung) << static_cast<int>(cause);
    EXPECT_EQ(plan_.retry_at, now_ + kSecond) << static_cast<int>(cause);
  }
  for (const Cause cause :
       {Cause::kWithinGuarantee, Cause::kBorrow, Cause::kOperator,
        Cause::kOverLimit, Cause::kPoolShrink}) {
    const bool asks =
        cause == Cause::kBorrow || cause == Cause::kWithinGuarantee;
    Make(Wants(cause, asks ? kC : kA, 10));
    EXPECT_EQ(Victims(), (Ids{1})) << static_cast<int>(cause);
  }
  leases_[0].let_in_until = now_;
  for (const Cause cause : {Cause::kPoolDrain, Cause::kTenantDelete}) {
    Make(Wants(cause, kA, 10));
    EXPECT_EQ(Victims(), (Ids{1})) << static_cast<int>(cause);
  }
}

TEST_F(PlannerTest, AGuaranteeWaitsForItAsLongAsItsDeadlineAllows) {
  Add(kA, 10, 90).coming_until = now_ + 2 * kSecond;
  Within(10);
  ASSERT_EQ(Victims(), (Ids{1}));
  EXPECT_EQ(plan_.victims[0].start, now_ + 2 * kSecond);
  Demand soon = Wants(Cause::kWithinGuarantee, kC, 10);
  soon.deadline = now_ + kSecond;
  Make(soon);
  ASSERT_EQ(Victims(), (Ids{1}));
  EXPECT_LT(plan_.victims[0].start, now_ + kSecond);
  EXPECT_GT(plan_.victims[0].start, now_ + kSecond / 2);
}

// 100 bytes take 100 ms each way: four round trips are 800 ms.
TEST_F(PlannerTest, WhoWakesOftenIsTakenAfterTheOthersAndSizeIsItsSessions) {
  options_.copy_bytes_per_second = 1000;
  LeaseRow& heartbeat = Add(kA, 10, 90);
  heartbeat.session_bytes = 100;
  heartbeat.usual_gap = std::chrono::milliseconds(799);
  heartbeat.backed_bytes = 10;
  Add(kB, 10, 1);
  Borrow(10);
  EXPECT_EQ(Victims(), Ids{2});
  leases_[0].usual_gap = std::chrono::milliseconds(800);
  Borrow(10);
  EXPECT_EQ(Victims(), Ids{1});
  leases_[0].restore_time = std::chrono::milliseconds(101);  // slower than that
  Borrow(10);
  EXPECT_EQ(Victims(), Ids{2});
  // Nobody is refused for the sake of it.
  Borrow(20);
  EXPECT_EQ(Victims(), (Ids{2, 1}));
}

TEST_F(PlannerTest, OfEquallyIdleOnesTheLeastExcessGoes) {
  Add(kA, 40, 50);
  Add(kA, 12, 50);
  Add(kA, 5, 50);
  Borrow(10);
  EXPECT_EQ(Victims(), Ids{2});
}

TEST_F(PlannerTest, DiscardedContentsCostNoCopy) {
  Add(kA, 10, 90);
  Add(kA, 10, 10).contents = Contents::kDiscard;
  Borrow(10);
  EXPECT_EQ(Victims(), Ids{2});
  EXPECT_EQ(plan_.copy_bytes, 0u);
}

TEST_F(PlannerTest, WhomALargerVictimMakesNeedlessIsLetOff) {
  Add(kA, 2, 90);
  Add(kA, 40, 50);
  Borrow(10);
  EXPECT_EQ(Victims(), Ids{2});
}

TEST_F(PlannerTest, OnlyParkedSoftLeasesAreEvicted) {
  Add(kA, 10, 1).gate = Gate::kActive;
  Add(kA, 10, 1).gate = Gate::kOff;
  Add(kA, 10, 1).contents = Contents::kResident;
  Add(kA, 10, 1).evictable = false;
  Add(kA, 10, 1).busy = true;
  Add(kA, 10, 1).evicted = true;
  Add(kA, 10, 1).session = SessionId{99};
  leases_.back().tenant = kC;
  Borrow(10);
  EXPECT_TRUE(plan_.empty());
  EXPECT_EQ(plan_.short_bytes, 10u);
  EXPECT_EQ(plan_.retry_at, Instant::Max());
  EXPECT_EQ(Why(1), Verdict::kActive);
  EXPECT_EQ(Why(2), Verdict::kGateOff);
  EXPECT_EQ(Why(3), Verdict::kResident);
  EXPECT_EQ(Why(4), Verdict::kResident);
  EXPECT_EQ(Why(5), Verdict::kBusy);
  EXPECT_EQ(Why(6), Verdict::kEvicted);
  EXPECT_EQ(Why(7), Verdict::kOwn);
}

TEST_F(PlannerTest, ASharedLeaseIsOwnOfAllWhoUseIt) {
  LeaseRow& shared = Add(kC, 10, 5);
  shared.session = {};
  shared.users = {SessionId{7}, SessionId{99}};
  EXPECT_TRUE(Borrow(10).victims.empty());
  EXPECT_EQ(Why(1), Verdict::kOwn);
  shared.users = {SessionId{7}};
  EXPECT_EQ(Borrow(10).victims.size(), 1u);
}

TEST_F(PlannerTest, ABorrowerTakesNothingBelowAGuarantee) {
  Tenant(kA).guarantee_bytes = 15;
  Add(kA, 10, 50);
  Add(kA, 10, 90);
  Borrow(10);
  EXPECT_TRUE(plan_.victims.empty());
  EXPECT_EQ(Why(1), Verdict::kGuaranteed);
  Tenant(kA).guarantee_bytes = 10;
  Borrow(10);
  EXPECT_EQ(Victims(), Ids{2});
  Borrow(20);  // would need both
  EXPECT_TRUE(plan_.victims.empty());
  EXPECT_EQ(Why(2), Verdict::kInsufficient);
  options_.lend_parked_guarantees = true;
  Borrow(20);
  EXPECT_EQ(Victims(), (Ids{2, 1}));
}

TEST_F(PlannerTest, ABorrowersOwnParkedSessionsMayGiveWay) {
  Tenant(kC).guarantee_bytes = 100;
  Add(kC, 10, 50);
  Borrow(10);
  EXPECT_EQ(Victims(), Ids{1});
}

TEST_F(PlannerTest, ARequestWithinTheGuaranteeTakesWhatIsBorrowed) {
  Tenant(kA).guarantee_bytes = 10;
  Tenant(kB).guarantee_bytes = 10;
  Add(kA, 10, 90);
  Add(kB, 15, 10);
  // The lease goes whole, though a part of it is guaranteed.
  Within(5);
  EXPECT_EQ(Victims(), Ids{2});
  EXPECT_EQ(Why(1), Verdict::kGuaranteed);
}

TEST_F(PlannerTest, ActiveBorrowersArePausedOnlyForAGuarantee) {
  Add(kA, 10, 0).gate = Gate::kActive;
  Add(kB, 30, 0).gate = Gate::kActive;
  Tenant(kB).pause_grace = 3 * kSecond;
  Borrow(10);
  EXPECT_TRUE(plan_.empty());
  Within(10);
  ASSERT_EQ(Victims(), Ids{2});  // has borrowed most
  EXPECT_EQ(plan_.victims[0].step, Step::kPause);
  EXPECT_EQ(plan_.victims[0].deadline, now_ + 3 * kSecond);
  Tenant(kB).weight = 10;
  Within(10);
  EXPECT_EQ(Victims(), Ids{1});
  options_.pause = false;
  Within(10);
  EXPECT_TRUE(plan_.empty());
}

TEST_F(PlannerTest, NobodyIsPausedWhileParkedOnesSuffice) {
  Add(kA, 10, 0).gate = Gate::kActive;
  Add(kB, 10, 5);
  Within(10);
  EXPECT_EQ(Victims(), Ids{2});
  Within(20);
  EXPECT_EQ(Victims(), (Ids{2, 1}));
}

TEST_F(PlannerTest, WhoIsWithinHisGuaranteeIsNotPaused) {
  Tenant(kA).guarantee_bytes = 10;
  Add(kA, 10, 0).gate = Gate::kActive;
  Within(10);
  EXPECT_TRUE(plan_.empty());
  EXPECT_EQ(Why(1), Verdict::kActive);
}

TEST_F(PlannerTest, ALeaseStaysResidentForItsTime) {
  Tenant(kA).min_residency = 3 * kSecond;
  LeaseRow& lease = Add(kA, 10, 0);
  lease.resident_since = now_ + -kSecond;
  Borrow(10);
  EXPECT_TRUE(plan_.empty());
  EXPECT_EQ(Why(1), Verdict::kYoung);
  EXPECT_EQ(plan_.retry_at, now_ + 2 * kSecond);
  // Four restores of it count as well.
  lease.restore_time = 2 * kSecond;
  Borrow(10);
  EXPECT_EQ(plan_.retry_at, now_ + 7 * kSecond);
  now_ = plan_.retry_at;
  Borrow(10);
  EXPECT_EQ(Victims(), Ids{1});
}

TEST_F(PlannerTest, AGuaranteeWaitsForTheYoungNoLongerThanItsDeadlineAllows) {
  Tenant(kA).min_residency = 10 * kSecond;
  Add(kA, 10, 0).resident_since = now_;
  Within(10);
  ASSERT_EQ(Victims(), Ids{1});
  EXPECT_EQ(plan_.victims[0].start, now_ + 10 * kSecond);
  Demand soon = Wants(Cause::kWithinGuarantee, kC, 10);
  soon.deadline = now_ + kSecond;
  Make(soon);
  ASSERT_EQ(Victims(), Ids{1});
  EXPECT_LT(plan_.victims[0].start, soon.deadline);
  EXPECT_GT(plan_.victims[0].start, now_);
  // One that is old enough comes first, however idle.
  Add(kB, 10, 0);
  Within(10);
  EXPECT_EQ(Victims(), Ids{2});
}

TEST_F(PlannerTest, AFailedVictimIsLeftAloneForItsBackOff) {
  Add(kA, 10, 90).back_off_until = now_ + 5 * kSecond;
  Within(10);
  EXPECT_TRUE(plan_.empty());
  EXPECT_EQ(Why(1), Verdict::kBackOff);
  EXPECT_EQ(plan_.retry_at, now_ + 5 * kSecond);
}

TEST_F(PlannerTest, WhoWasPausedInVainIsSparedPausesAlone) {
  LeaseRow& lease = Add(kA, 10, 0);
  lease.gate = Gate::kActive;
  lease.no_pause_until = now_ + 5 * kSecond;
  lease.trimmable_bytes = 4;
  Within(10);
  EXPECT_TRUE(plan_.victims.empty());
  EXPECT_EQ(plan_.trims.size(), 1u);
  EXPECT_EQ(Why(1), Verdict::kPauseFailed);
  EXPECT_EQ(plan_.retry_at, now_ + 5 * kSecond);
  Borrow(10);
  EXPECT_EQ(Why(1), Verdict::kActive);
  EXPECT_EQ(plan_.retry_at, Instant::Max());
  lease.gate = Gate::kParked;
  lease.trimmable_bytes = 0;
  Within(10);
  EXPECT_EQ(Victims(), Ids{1});
  lease.gate = Gate::kActive;
  now_ = now_ + 5 * kSecond;
  Within(10);
  ASSERT_EQ(Victims(), Ids{1});
  EXPECT_EQ(plan_.victims[0].step, Step::kPause);
}

TEST_F(PlannerTest, WhoDoesNotUnmapIsTerminatedIfPolicyAllows) {
  AddOverdue(kA, 10);
  now_ = now_ + options_.kill_grace;
  Borrow(10);
  EXPECT_TRUE(plan_.empty());
  EXPECT_EQ(Why(1), Verdict::kMayNotTerminate);
  Tenant(kA).may_terminate = true;
  Borrow(10);
  ASSERT_EQ(Victims(), Ids{1});
  EXPECT_EQ(plan_.victims[0].step, Step::kTerminate);
  // The last step of the ladder: others come first.
  Add(kB, 10, 0);
  Borrow(10);
  EXPECT_EQ(Victims(), Ids{2});
  EXPECT_FALSE(plan_.victims[0].may_terminate);
}

TEST_F(PlannerTest, WhoDoesNotUnmapHasTimeUntilItIsTerminated) {
  AddOverdue(kA, 10);
  Tenant(kA).may_terminate = true;
  const Instant kill_at = now_ + options_.kill_grace;
  for (const Cause cause :
       {Cause::kWithinGuarantee, Cause::kBorrow, Cause::kPoolDrain}) {
    Make(Wants(cause, kC, 10));
    EXPECT_TRUE(plan_.empty());
    EXPECT_EQ(Why(1), Verdict::kBusy);
    EXPECT_EQ(plan_.retry_at, kill_at) << "and is looked at again then";
  }
  now_ = kill_at;
  Within(10);
  EXPECT_EQ(Victims(), Ids{1});
}

// Others may owe their answers just as long.
TEST_F(PlannerTest, AGuaranteeHasAProcessKilledThoughOthersAreParked) {
  AddOverdue(kA, 10);
  Tenant(kA).may_terminate = true;
  Add(kB, 10, 90);
  EXPECT_EQ(Within(10).victims.size(), 1u);
  EXPECT_EQ(Victims(), Ids{2}) << "it still has time";
  now_ = now_ + options_.kill_grace;
  Within(10);
  EXPECT_EQ(Victims(), Ids{1});
  EXPECT_EQ(plan_.victims[0].step, Step::kTerminate);
  Within(20);
  EXPECT_EQ(Victims(), (Ids{1, 2})) << "and the others are evicted beside";
  // Not of a tenant that has borrowed nothing.
  Tenant(kA).guarantee_bytes = 10;
  Within(10);
  EXPECT_EQ(Victims(), Ids{2});
}

TEST_F(PlannerTest, AllOfOneProcessBeforeTheNextOneIsKilled) {
  for (int i = 0; i < 4; ++i) AddOverdue(kA, 10).idle_since = {i};
  leases_[3].session = leases_[0].session;
  Tenant(kA).may_terminate = true;
  now_ = now_ + options_.kill_grace;
  Within(20);
  EXPECT_EQ(Victims(), (Ids{1, 4}));
}

TEST_F(PlannerTest, NothingMoreIsTriedOfAProcessThatOwesAnAnswer) {
  Add(kA, 10, 90).owed_by_process = 1;
  Add(kA, 10, 10);
  EXPECT_EQ(Borrow(10).victims.size(), 1u);
  EXPECT_EQ(Victims(), Ids{2});
  EXPECT_EQ(Why(1), Verdict::kDistrusted);
  Within(20);
  EXPECT_EQ(Victims(), Ids{2});
  EXPECT_EQ(plan_.short_bytes, 10u);
  // The bytes it says it could trim are not counted on either.
  leases_[0].trimmable_bytes = 10;
  EXPECT_TRUE(Within(10).trims.empty());
  // Nor is it paused.
  leases_[0].gate = Gate::kActive;
  Within(20);
  EXPECT_EQ(Victims(), Ids{2});
}

TEST_F(PlannerTest, NothingMoreIsTriedOfATenantThatOwesThreeAnswers) {
  Add(kA, 10, 90);
  Add(kB, 10, 10);
  Tenant(kA).owed_answers = 2;
  Within(10);
  EXPECT_EQ(Victims(), Ids{1});
  Tenant(kA).owed_answers = 3;
  Within(10);
  EXPECT_EQ(Victims(), Ids{2});
  EXPECT_EQ(Why(1), Verdict::kDistrusted);
}

// They have nobody else to choose, and lose nothing by trying.
TEST_F(PlannerTest, OperatorsDemandsTryThoseWhoOweAnswers) {
  Add(kA, 10, 90).owed_by_process = 1;
  Tenant(kA).owed_answers = 3;
  for (const Cause cause : {Cause::kOperator, Cause::kOverLimit,
                            Cause::kTenantDelete, Cause::kPoolDrain}) {
    Make(Wants(cause, kA, 10));
    EXPECT_EQ(Victims(), Ids{1});
  }
}

// The head of a queue does not collect piece by piece for the sake of bytes
// that nobody will give.
TEST_F(PlannerTest, WhatThoseWhoOweAnswersHoldIsNotCountedOn) {
  Add(kA, 10, 90);
  Add(kB, 10, 90).gate = Gate::kActive;
  Demand demand = Wants(Cause::kBorrow, kC, 20);
  demand.collects = true;
  Make(demand);
  EXPECT_EQ(Victims(), Ids{1});
  leases_[1].owed_by_process = 1;
  Make(demand);
  EXPECT_TRUE(plan_.empty());
}

TEST_F(PlannerTest, ContentsNeedRoomInTheHostPool) {
  Add(kA, 10, 90).host_room = false;
  Add(kA, 10, 80).host_room = false;
  host_free_bytes_ = 10;
  Borrow(20);
  EXPECT_TRUE(plan_.victims.empty());
  EXPECT_EQ(Why(2), Verdict::kNoHostRoom);
  leases_[1].backed_bytes = 10;
  Borrow(20);
  EXPECT_EQ(Victims(), (Ids{2, 1}));
}

TEST_F(PlannerTest, NoMoreThanSixteenVictims) {
  for (int i = 0; i < 40; ++i) Add(kA, 2, 90);
  Borrow(60);
  EXPECT_EQ(plan_.victims.size(), kMaxVictims);
  EXPECT_EQ(plan_.short_bytes, 28u);
  // Larger ones instead, where they meet the need.
  Add(kB, 50, 1);
  Borrow(60);
  EXPECT_LE(plan_.victims.size(), 6u);
  EXPECT_EQ(plan_.short_bytes, 0u);
}

TEST_F(PlannerTest, TrimmingIsAskedOfBorrowersFirstAndNeedlessEvictionWaits) {
  Tenant(kA).guarantee_bytes = 100;
  Add(kA, 10, 0).trimmable_bytes = 8;
  leases_.back().gate = Gate::kActive;
  Add(kB, 10, 0).trimmable_bytes = 4;
  leases_.back().gate = Gate::kActive;
  Add(kB, 10, 90);
  Borrow(4);
  ASSERT_EQ(plan_.trims.size(), 1u);
  EXPECT_EQ(plan_.trims[0].session, SessionId{2});
  EXPECT_EQ(plan_.trim_deadline, now_ + options_.trim_wait);
  ASSERT_EQ(Victims(), Ids{3});
  EXPECT_EQ(plan_.victims[0].start, plan_.trim_deadline);
  EXPECT_EQ(plan_.trim_by, plan_.trim_deadline);
  Borrow(13);
  EXPECT_EQ(plan_.trims.size(), 2u);
}

// Of a request that was put off since.
TEST_F(PlannerTest, ADeadlineThatIsOverLeavesTheTimeToTrim) {
  Add(kA, 10, 90).trimmable_bytes = 4;
  Demand demand = Wants(Cause::kWithinGuarantee, kB, 4);
  demand.deadline = now_ + -kSecond;
  Make(demand);
  ASSERT_EQ(plan_.trims.size(), 1u);
  EXPECT_EQ(plan_.trim_deadline, now_ + options_.trim_wait);
  EXPECT_EQ(plan_.trim_by, now_ + options_.trim_wait);
}

TEST_F(PlannerTest, EvictionsWaitForTrimsFromTheFirstAskingOn) {
  Add(kA, 10, 90).trimmable_bytes = 4;
  Demand demand = Wants(Cause::kBorrow, kB, 4);
  demand.trim_by = now_ + Nanoseconds(5);
  Make(demand);
  EXPECT_EQ(plan_.trims.size(), 1u);
  EXPECT_EQ(plan_.trim_deadline, now_ + options_.trim_wait);
  EXPECT_EQ(plan_.trim_by, demand.trim_by);
  ASSERT_EQ(Victims(), Ids{1});
  EXPECT_EQ(plan_.victims[0].start, demand.trim_by);
  demand.trim_by = now_ + -kSecond;
  Make(demand);
  EXPECT_EQ(plan_.trims.size(), 1u);
  ASSERT_EQ(Victims(), Ids{1});
  EXPECT_EQ(plan_.victims[0].start, now_);
}

TEST_F(PlannerTest, ThoseThatRestAreAskedToTrimBeforeThoseAtWork) {
  Tenant(kA).guarantee_bytes = 100;
  Add(kB, 10, 0).trimmable_bytes = 8;
  Add(kA, 10, 1).trimmable_bytes = 4;
  Borrow(4);
  ASSERT_EQ(plan_.trims.size(), 1u);
  EXPECT_EQ(plan_.trims[0].session, SessionId{2});
  Borrow(9);
  EXPECT_EQ(plan_.trims.size(), 2u);
}

TEST_F(PlannerTest, OfThoseAtWorkTheLongestIdleIsAskedToTrimFirst) {
  Add(kA, 10, 0).trimmable_bytes = 8;
  Add(kB, 10, 0).trimmable_bytes = 4;
  leases_.back().idle_since = now_ + -kSecond / 2;
  Borrow(4);
  ASSERT_EQ(plan_.trims.size(), 1u);
  EXPECT_EQ(plan_.trims[0].session, SessionId{2});
}

TEST_F(PlannerTest, ThoseAtWorkKeepTheirCachesWhereOthersLeaveWithoutACopy) {
  Add(kA, 10, 0).trimmable_bytes = 8;
  Add(kB, 10, 90).backed_bytes = 10;
  Borrow(8);
  EXPECT_TRUE(plan_.trims.empty());
  ASSERT_EQ(Victims(), Ids{2});
  EXPECT_EQ(plan_.victims[0].start, now_);
  EXPECT_EQ(Why(1), Verdict::kNotNeeded);
  // It is not enough, or needs a copy, or was used a moment ago itself.
  Borrow(18);
  EXPECT_EQ(plan_.trims.size(), 1u);
  leases_[1].backed_bytes = 0;
  Borrow(8);
  EXPECT_EQ(plan_.trims.size(), 1u);
  leases_[1].backed_bytes = 10;
  leases_[1].idle_since = now_ + -kSecond / 2;
  Borrow(8);
  EXPECT_EQ(plan_.trims.size(), 1u);
}

TEST_F(PlannerTest, ATrimThatIsUnderWayIsWaitedForAndNotAskedForAgain) {
  Add(kA, 10, 90).trimming_bytes = 4;
  Borrow(4);
  EXPECT_TRUE(plan_.trims.empty());
  EXPECT_EQ(plan_.trim_by, now_ + options_.trim_wait);
  ASSERT_EQ(Victims(), Ids{1});
  EXPECT_EQ(plan_.victims[0].start, plan_.trim_by);
  Borrow(5);
  ASSERT_EQ(Victims(), Ids{1});
  EXPECT_EQ(plan_.victims[0].start, now_);
}

TEST_F(PlannerTest, AnOperatorsReclaimTakesOfThatTenantAlone) {
  Tenant(kA).guarantee_bytes = 100;
  Add(kA, 10, 1).resident_since = now_;
  leases_.back().restore_time = kSecond;
  Add(kB, 10, 90);
  Demand demand = Wants(Cause::kOperator, kA, 1000);
  Make(demand);
  EXPECT_EQ(Victims(), Ids{1});
  EXPECT_EQ(Why(2), Verdict::kNotAsked);
  demand.last_step = Step::kTrim;
  Make(demand);
  EXPECT_TRUE(plan_.victims.empty());
  EXPECT_EQ(plan_.short_bytes, 10u);
}

TEST_F(PlannerTest, AGuaranteeIsNotKeptWaitingForThoseThatRest) {
  Tenant(kC).guarantee_bytes = 100;
  Add(kA, 10, 0).trimmable_bytes = 8;
  Add(kB, 10, 90).backed_bytes = 10;
  Within(8);
  EXPECT_EQ(plan_.trims.size(), 1u);
}

TEST_F(PlannerTest, AnOperatorsTrimIsAskedOfThoseAtWorkToo) {
  Add(kA, 10, 0).trimmable_bytes = 8;
  Add(kA, 10, 90).backed_bytes = 10;
  Demand demand = Wants(Cause::kOperator, kA, 8);
  Make(demand);
  EXPECT_TRUE(plan_.trims.empty());
  demand.last_step = Step::kTrim;
  Make(demand);
  EXPECT_EQ(plan_.trims.size(), 1u);
  EXPECT_EQ(plan_.short_bytes, 0u);
}

// A plan sees one lease each of those that cannot be evicted.
TEST_F(PlannerTest, AnOperatorsTrimIsForMoreThanTheLeasesThatAreSeen) {
  for (int i = 0; i < 3; ++i) {
    LeaseRow& lease = Add(kA, 1, 0);
    lease.gate = Gate::kOff;
    lease.trimmable_bytes = 20;
  }
  Demand demand = Wants(Cause::kOperator, kA, 40);
  for (const Step last : {Step::kTrim, Step::kEvict}) {
    demand.last_step = last;
    Make(demand);
    EXPECT_EQ(plan_.trims.size(), 2u);
  }
}

TEST_F(PlannerTest, TrimsAloneHaveTheTimeOfTheirDemand) {
  Add(kA, 10, 1).trimmable_bytes = 10;
  Demand demand = Wants(Cause::kOperator, kA, 10);
  demand.deadline = now_ + 3 * kSecond;
  Make(demand);
  EXPECT_EQ(plan_.trim_by, now_ + options_.trim_wait);
  demand.last_step = Step::kTrim;
  Make(demand);
  EXPECT_EQ(plan_.trim_by, demand.deadline);
  EXPECT_EQ(plan_.trim_deadline, demand.deadline);
}

TEST_F(PlannerTest, WhatIsOverALimitIsTakenOfItsTenant) {
  Add(kA, 10, 1);
  Add(kA, 10, 50);
  Add(kB, 10, 90);
  Make(Wants(Cause::kOverLimit, kA, 5));
  EXPECT_EQ(Victims(), Ids{2});
}

TEST_F(PlannerTest, AShrinkTakesWhatIsBorrowedAndADrainAll) {
  Tenant(kA).guarantee_bytes = 10;
  Add(kA, 10, 90);
  Add(kB, 10, 1);
  Make(Wants(Cause::kPoolShrink, {}, 5));
  EXPECT_EQ(Victims(), Ids{2});
  Make(Wants(Cause::kPoolDrain, {}, ~uint64_t{0}));
  EXPECT_EQ(Victims(), (Ids{1, 2}));
  EXPECT_EQ(plan_.short_bytes, 0u);
}

TEST_F(PlannerTest, ADeletedTenantGoesAtItsDeadlineIfPolicyAllows) {
  Add(kA, 10, 90);
  Add(kA, 10, 0).gate = Gate::kActive;
  const Demand demand = Wants(Cause::kTenantDelete, kA, ~uint64_t{0});
  Make(demand);
  EXPECT_EQ(Victims(), Ids{1});
  EXPECT_EQ(plan_.short_bytes, 10u);
  Tenant(kA).may_terminate = true;
  Make(demand);
  ASSERT_EQ(Victims(), (Ids{1, 2}));
  EXPECT_EQ(plan_.victims[1].step, Step::kTerminate);
  EXPECT_EQ(plan_.victims[1].start, demand.deadline);
}

TEST_F(PlannerTest, ARequestOfTwoPoolsIsServedInBothOrInNeither) {
  constexpr PoolId kOther{2};
  Add(kA, 10, 90);
  Demand demand = Wants(Cause::kBorrow, kC, 10);
  demand.needs.push_back({kOther, 10});
  tenants_ = {{.tenant = kA, .pool = kPool, .resident_bytes = 10},
              {.tenant = kA, .pool = kOther, .resident_bytes = 10}};
  Make(demand);
  EXPECT_TRUE(plan_.victims.empty());
  EXPECT_EQ(plan_.short_bytes, 20u);
  LeaseRow other = leases_[0];
  other.lease = LeaseId{2};
  other.pool = kOther;
  leases_.push_back(other);
  Make(demand);
  EXPECT_EQ(Victims(), (Ids{1, 2}));
}

TEST_F(PlannerTest, ExtremeFiguresDoNotOverflow) {
  LeaseRow& lease = Add(kA, kMaxPoolBytes, 0);
  lease.restore_time = Nanoseconds::max();
  lease.resident_since = Instant::Max();
  lease.backed_bytes = ~uint64_t{0};
  lease.idle_since = {std::numeric_limits<int64_t>::min()};
  Demand demand = Wants(Cause::kWithinGuarantee, kC, ~uint64_t{0});
  demand.deadline = {std::numeric_limits<int64_t>::min()};
  options_.copy_bytes_per_second = 0;
  EXPECT_EQ(Make(demand).planned_bytes, kMaxPoolBytes);
}

}  // namespace
}  // namespace gmb::quota
