// The head of a queue holds bytes back from some, at some times: an example for
// each rule.
#include "quota/claim.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "tests/quota/engine_fixture.h"

namespace gmb::quota {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ClaimTest : public EngineTest {
 protected:
  static constexpr PoolId kOther{2};
  static constexpr TenantId kD{4};
  static constexpr Nanoseconds kHour = std::chrono::hours(1);

  // Both pools have 1,024 bytes, of which every tenant may borrow all.
  void SetUp() override {
    for (const PoolId pool : {kPool, kOther}) Do(PoolSet{pool, 1024, 1});
    for (const TenantId tenant : {kA, kB, kC, kD}) {
      Do(TenantSet{.tenant = tenant});
      for (const PoolId pool : {kPool, kOther}) Guarantee(tenant, 0, pool);
    }
  }
  void Guarantee(TenantId tenant, uint64_t bytes, PoolId pool = kPool) {
    Do(QuotaSet{pool, tenant, {Amount::Bytes(bytes), Amount::Bytes(1024), 1}});
  }

  void At(Nanoseconds since_start) { now_ = Instant{} + since_start; }
  Acquire Asks(TenantId tenant, uint64_t bytes, PoolId pool = kPool) {
    return {.request = RequestId{++last_request_},
            .session = SessionId{tenant.value},
            .tenant = tenant,
            .pool = pool,
            .bytes = bytes,
            .deadline = now_,
            .hard = false};
  }
  // Requests for soft bytes; the first without a wait.
  std::optional<LeaseId> Soft(TenantId tenant, uint64_t bytes,
                              PoolId pool = kPool) {
    const Acquire acquire = Asks(tenant, bytes, pool);
    Do(acquire);
    return LeaseOf(acquire.request);
  }
  RequestId WaitSoft(TenantId tenant, uint64_t bytes, PoolId pool = kPool,
                     Nanoseconds wait = kHour) {
    Acquire acquire = Asks(tenant, bytes, pool);
    acquire.deadline = now_ + wait;
    Do(acquire);
    return acquire.request;
  }
  RequestId WaitFor(TenantId tenant, std::vector<LeaseId> leases,
                    Nanoseconds wait = kHour,
                    Nanoseconds linger = Nanoseconds(0)) {
    Do(Restore{.request = RequestId{++last_request_},
               .session = SessionId{tenant.value},
               .leases = std::move(leases),
               .deadline = now_ + wait,
               .linger = linger});
    return RequestId{last_request_};
  }
  // As a client that waits on.
  Effects SendAgain(RequestId request, Nanoseconds wait) {
    return Do(Restore{.request = request,
                      .leases = {},
                      .deadline = now_ + wait,
                      .linger = seconds(1)});
  }
  // Leases of the tenant in both pools, evicted.
  std::vector<LeaseId> Away(TenantId tenant, uint64_t here, uint64_t there) {
    const std::vector<LeaseId> leases = {*Soft(tenant, here),
                                         *Soft(tenant, there, kOther)};
    for (const LeaseId lease : leases) Do(Evicted{lease});
    return leases;
  }
  // Whether 1 byte could be borrowed now: it is given back at once.
  bool Passes(TenantId tenant, PoolId pool = kPool) {
    const auto lease = Soft(tenant, 1, pool);
    if (lease) Release(lease);
    return lease.has_value();
  }
  // Ticks when the engine asks for it.
  void RunUntil(Nanoseconds since_start) {
    std::vector<RequestId> granted;
    while (engine_.NextDeadline() &&
           *engine_.NextDeadline() <= Instant{} + since_start) {
      now_ = *engine_.NextDeadline();
      Do(Tick{});
      for (const RequestId request : GrantedRequests()) {
        granted_at_[request] = now_ - Instant{};
      }
    }
    At(since_start);
  }

  std::map<RequestId, Nanoseconds> granted_at_;
};

TEST_F(ClaimTest, WindowsAreOpenForAsLongAsTheyWereHeld) {
  const ClaimWindow window = {.from = Instant{} + seconds(10),
                              .first = seconds(1)};
  const auto holds = [&](Nanoseconds claimed) {
    return PhaseAt(window, window.from + claimed).holds;
  };
  EXPECT_FALSE(holds(Nanoseconds(-1)));
  // 1 and 1, then 2 and 2, and then each hold as long as all before it.
  const std::vector<std::pair<int, int>> held = {
      {0, 1}, {2, 4}, {6, 12}, {18, 36}, {54, 108}, {162, 324}};
  for (const auto& [begin, end] : held) {
    EXPECT_FALSE(holds(seconds(begin) - Nanoseconds(1)));
    EXPECT_TRUE(holds(seconds(begin)));
    EXPECT_TRUE(holds(seconds(end) - Nanoseconds(1)));
    EXPECT_FALSE(holds(seconds(end)));
  }
  EXPECT_EQ(PhaseAt(window, window.from + seconds(3)).since,
            window.from + seconds(2));
  EXPECT_EQ(PhaseAt(window, window.from + seconds(3)).until,
            window.from + seconds(4));
}

TEST_F(ClaimTest, ARestoreThatIsSentAgainInTimeKeepsItsPlaceAndItsClaim) {
  const auto away = Soft(kA, 800);
  Do(Evicted{*away});
  const auto first = Soft(kB, 600), second = Soft(kB, 424);
  const RequestId request = WaitFor(kA, {*away}, seconds(10), seconds(1));
  RunUntil(milliseconds(10'900));
  ASSERT_TRUE(engine_.IsWaiting(request)) << "its time was over at 10 s";
  EXPECT_EQ(engine_.DenialOf(request).denied.deficit_bytes, 800u);
  EXPECT_FALSE(engine_.DenialOf(request).denied.claimed);
  EXPECT_THAT(SendAgain(request, seconds(10)), IsEmpty());
  // The bytes that it lacks are soft: the claim holds from 1 to 9 s, and from 17 to
  // 33 s, in which others do not get what is collected for it.
  Release(*first);
  EXPECT_TRUE(Passes(kC));
  RunUntil(milliseconds(20'800));
  EXPECT_FALSE(Passes(kC));
  RunUntil(milliseconds(21'800));
  EXPECT_THAT(SendAgain(request, seconds(10)), IsEmpty());
  RunUntil(milliseconds(32'700));
  EXPECT_TRUE(engine_.IsWaiting(request));
  RunUntil(milliseconds(32'900));
  EXPECT_FALSE(engine_.IsWaiting(request)) << "nobody has asked again";
  EXPECT_TRUE(Passes(kC));
  Release(*second);
}

// As one under `gmb run` does: a Restore that cannot be served, for hours.
TEST_F(ClaimTest, OneThatIsSentAgainForHoursKeepsNobodyOutForMinutes) {
  const auto away = Soft(kA, 800);
  Do(Evicted{*away});
  const auto stays = Soft(kB, 600);
  for (const Nanoseconds wait :
       {Nanoseconds(0), Nanoseconds(seconds(10)), kHour}) {
    SCOPED_TRACE(wait.count());
    RequestId request = WaitFor(kA, {*away}, seconds(10), seconds(1));
    Instant last = now_;
    Nanoseconds longest{0};
    const Nanoseconds from = now_ - Instant{};
    for (int second = 1; second <= 7200; ++second) {
      RunUntil(from + seconds(second));
      if (!engine_.IsWaiting(request))
        request = WaitFor(kA, {*away}, seconds(10), seconds(1));
      else
        SendAgain(request, wait);
      if (!Passes(kC)) continue;
      longest = std::max(longest, now_ - last);
      last = now_;
    }
    EXPECT_GT(longest, seconds(40)) << "its later holds were reached";
    EXPECT_LT(longest, seconds(60));
    Do(Cancel{request});
  }
  Release(*stays);
}

// While it waits nobody else can ask for the lease.
TEST_F(ClaimTest, OneWhoseLeaseIsSharedMeanwhileEndsAtItsOwnTime) {
  const auto away = Soft(kA, 800);
  Do(Evicted{*away});
  const auto stays = Soft(kB, 600);
  const RequestId request = WaitFor(kA, {*away}, seconds(10), seconds(1));
  RunUntil(seconds(9));
  Do(Shared{*away});
  RunUntil(milliseconds(9'900));
  EXPECT_TRUE(engine_.IsWaiting(request));
  RunUntil(seconds(10));
  EXPECT_FALSE(engine_.IsWaiting(request));
  Release(*stays);
}

// It would keep bytes of one pool for as long as the other lacks some.
TEST_F(ClaimTest, OneOfTwoPoolsEndsAtItsOwnTimeAlthoughItIsSentAgain) {
  const std::vector<LeaseId> away = Away(kA, 100, 800);
  const auto stays = Soft(kB, 600, kOther);
  const RequestId request = WaitFor(kA, away, seconds(10), seconds(1));
  RunUntil(seconds(9));
  SendAgain(request, seconds(10));
  RunUntil(milliseconds(9'900));
  EXPECT_TRUE(engine_.IsWaiting(request));
  RunUntil(seconds(10));
  EXPECT_FALSE(engine_.IsWaiting(request));
  Release(*stays);
}

TEST_F(ClaimTest, AClaimThatIsNotKnownYetHoldsNothingAndOneForEverEnds) {
  const ClaimWindow unknown = {.from = Instant{} + seconds(1)};
  EXPECT_FALSE(PhaseAt(unknown, Instant::Max()).holds);
  const ClaimWindow late = {.from = Instant::Max() + -seconds(1),
                            .first = seconds(9)};
  EXPECT_TRUE(PhaseAt(late, Instant::Max()).holds);
  EXPECT_EQ(PhaseAt(late, Instant::Max()).until, Instant::Max());
}

// 64 are asked for with 512 of 1,024 free, because somebody waits for 900.
TEST_F(ClaimTest, ARefusalForAClaimSaysSoAndWhatIsLacking) {
  Take(kA, 512);
  WaitSoft(kB, 900);
  At(milliseconds(1500));
  Do(Tick{});
  EXPECT_EQ(View(kC).obtainable_bytes, 0u);
  EXPECT_EQ(View(kC).obtainable_soft_bytes, 0u);
  EXPECT_FALSE(Take(kC, 64));
  // 388 for the head, and these.
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 452));
  EXPECT_TRUE(OnlyDenied().claimed);
  // Missing bytes are missing, whoever claims.
  EXPECT_FALSE(Take(kC, 600));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 88));
  EXPECT_FALSE(OnlyDenied().claimed);
  At(milliseconds(2500));
  Do(Tick{});
  EXPECT_EQ(View(kC).obtainable_bytes, 512u);
  EXPECT_TRUE(Take(kC, 64));
}

// 576 lie ready, and one waits for an hour for more than can come free.
TEST_F(ClaimTest, AHeadThatCannotBeServedCostsOthersHalfOfTheTime) {
  Take(kA, 448);
  const RequestId head = WaitSoft(kB, 700);
  int refused = 0;
  // To the end of a window: 1 + 2 * (1 + 2 + 6 + 18 + 54 + 162 + 486) s.
  const int quarters = 4 * 1459;
  for (int i = 0; i < quarters; ++i) {
    At(i * milliseconds(250));
    refused += !Passes(kC);
  }
  EXPECT_TRUE(engine_.IsWaiting(head));
  EXPECT_EQ(refused, 4 * 729);
}

TEST_F(ClaimTest, OnesThatWaitBehindItAreServedWhenItLetsThemPass) {
  Take(kA, 448);
  WaitSoft(kB, 700);
  At(milliseconds(1500));
  const RequestId behind = WaitSoft(kC, 64);
  EXPECT_EQ(engine_.NextDeadline(), Instant{} + seconds(2));
  RunUntil(seconds(10));
  EXPECT_EQ(granted_at_[behind], seconds(2));
}

TEST_F(ClaimTest, AllThatComesFreeInAHoldIsTheHeads) {
  const auto one = Take(kA, 300), two = Take(kC, 300);
  const RequestId head = WaitSoft(kB, 900);
  At(milliseconds(1200));
  Release(one);
  EXPECT_FALSE(Passes(kD));
  At(milliseconds(1400));
  Release(two);
  EXPECT_THAT(GrantedRequests(), ElementsAre(head));
  EXPECT_TRUE(Passes(kD));
}

TEST_F(ClaimTest, AHoldThatCouldBeCoveredLastsForEightSeconds) {
  Soft(kA, 512);
  WaitSoft(kB, 900);
  EXPECT_TRUE(Passes(kC));
  At(milliseconds(1000));
  EXPECT_FALSE(Passes(kC));
  At(milliseconds(8999));
  EXPECT_FALSE(Passes(kC));
  At(milliseconds(9000));
  EXPECT_TRUE(Passes(kC));
  At(milliseconds(16'999));
  EXPECT_TRUE(Passes(kC));
  At(seconds(17));
  EXPECT_FALSE(Passes(kC));
}

// Somebody holds a byte for `t`, and then the next one; and takes one at the
// last moment before each hold.
TEST_F(ClaimTest, NobodyKeepsTheHeadWaitingByTheTimingOfHisLeases) {
  for (Nanoseconds t = milliseconds(700); t < seconds(60);
       t += milliseconds(700)) {
    engine_ = Engine();
    now_ = {};
    SetUp();
    std::multimap<Instant, LeaseId> ends;
    const auto take = [&] {
      if (const auto lease = Take(kA, 1)) ends.emplace(now_ + t, *lease);
    };
    take();
    const RequestId head = WaitSoft(kB, 1024);
    while (engine_.IsWaiting(head)) {
      const Instant turn = *engine_.NextDeadline();
      const Instant before = turn + Nanoseconds(-1);
      if (!ends.empty() && ends.begin()->first < turn) {
        now_ = ends.begin()->first;
        take();
        Release(ends.begin()->second);
        ends.erase(ends.begin());
        continue;
      }
      now_ = before;
      take();
      now_ = turn;
      Do(Tick{});
    }
    EXPECT_LE(now_, Instant{} + 4 * t + seconds(4)) << t.count();
  }
}

TEST_F(ClaimTest, OnlyWhatMayBeTakenCoversAClaim) {
  // Only bytes above guarantees, or that come back by themselves, count.
  Guarantee(kA, 200);
  Soft(kA, 512);
  WaitSoft(kB, 900);
  At(milliseconds(1500));
  EXPECT_FALSE(Passes(kC));
  At(milliseconds(2500));
  EXPECT_TRUE(Passes(kC));
}

TEST_F(ClaimTest, BytesThatComeBackByThemselvesCoverAClaim) {
  Do(MissingChanged{kPool, 500, 400});
  WaitSoft(kB, 900);
  At(milliseconds(2500));
  EXPECT_FALSE(Passes(kC));
  At(seconds(9));
  EXPECT_TRUE(Passes(kC));
}

TEST_F(ClaimTest, ARestoreOfTwoPoolsIsNoWallWhereItsBytesAre) {
  const auto away = Away(kB, 900, 300);
  Take(kA, 512);
  WaitFor(kB, away);
  At(milliseconds(1500));
  EXPECT_FALSE(Passes(kC));
  // The other pool is empty: all but its own bytes may be borrowed.
  EXPECT_FALSE(Soft(kC, 725, kOther));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 1));
  EXPECT_TRUE(OnlyDenied().claimed);
  EXPECT_TRUE(Soft(kC, 700, kOther));
  EXPECT_EQ(engine_.TenantPool(kC, kOther)->obtainable_soft_bytes, 24u);
  At(milliseconds(2500));
  EXPECT_TRUE(Soft(kC, 300, kOther));
}

TEST_F(ClaimTest, NorIsOneThatIsWithinItsGuaranteeThere) {
  Guarantee(kB, 300, kOther);
  const auto away = Away(kB, 900, 300);
  Take(kA, 512);
  const RequestId head = WaitFor(kB, away);
  EXPECT_FALSE(Soft(kC, 725, kOther));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 1));
  EXPECT_TRUE(OnlyDenied().claimed);
  EXPECT_TRUE(Soft(kC, 700, kOther));
  // The bytes it may have by its guarantee are never lent.
  At(milliseconds(2500));
  EXPECT_FALSE(Soft(kC, 25, kOther));
  EXPECT_TRUE(Soft(kC, 24, kOther));
  EXPECT_TRUE(engine_.IsWaiting(head));
}

TEST_F(ClaimTest, ThereTheFirstThatLacksBytesIsTheHead) {
  const auto away = Away(kB, 900, 300);
  Take(kA, 512);
  WaitFor(kB, away);
  Soft(kC, 500, kOther);
  WaitSoft(kD, 600, kOther);
  EXPECT_TRUE(Passes(kA, kOther));
  At(milliseconds(1500));
  // It is not kept waiting by smaller ones that leave the Restore its bytes.
  EXPECT_FALSE(Passes(kA, kOther));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 77));
  At(milliseconds(2500));
  EXPECT_FALSE(Passes(kA, kOther));  // the other could be covered
}

TEST_F(ClaimTest, WhatItCollectsInOnePoolIsNotTakenInTheOther) {
  const auto away = Away(kB, 900, 300);
  const auto here = Soft(kA, 512), there = Soft(kC, 1024, kOther);
  const RequestId head = WaitFor(kB, away);
  At(milliseconds(1200));
  Do(Evicted{*there});
  EXPECT_TRUE(Soft(kD, 700, kOther));
  EXPECT_FALSE(Soft(kD, 100, kOther));
  At(milliseconds(1600));
  Do(Evicted{*here});
  EXPECT_THAT(Said(), ElementsAre("Restored request=5 session=2 tenant=2 "
                                  "bytes=1200"));
  EXPECT_FALSE(engine_.IsWaiting(head));
}

TEST_F(ClaimTest, ItsTurnInOnePoolGivesNobodyWhatAnOlderOneClaimsInAnother) {
  const auto away = Away(kD, 200, 200);
  Take(kA, 512);
  WaitSoft(kB, 900);
  At(milliseconds(1500));
  // Nobody waits in the other pool.
  const RequestId restore = WaitFor(kD, away);
  EXPECT_TRUE(engine_.IsWaiting(restore));
  RunUntil(milliseconds(1999));
  EXPECT_TRUE(engine_.IsWaiting(restore));
  RunUntil(seconds(2));
  EXPECT_FALSE(engine_.IsWaiting(restore));
}

TEST_F(ClaimTest, OfTwoThatClaimCrosswiseTheOlderGoesFirst) {
  const auto b = Away(kB, 700, 400), c = Away(kC, 400, 700);
  const auto here = Take(kA, 1000);
  Do(Acquire{.request = RequestId{++last_request_},
             .session = SessionId{kD.value},
             .tenant = kD,
             .pool = kOther,
             .bytes = 1000,
             .deadline = now_});
  const auto there = LeaseOf(RequestId{last_request_});
  // Each is first in one of the pools: its tenant has borrowed less there.
  Soft(kB, 10, kOther);
  Soft(kC, 10);
  WaitFor(kB, b);
  WaitFor(kC, c);
  At(milliseconds(1500));
  EXPECT_FALSE(Passes(kA));
  EXPECT_FALSE(Passes(kA, kOther));
  Release(there);
  EXPECT_THAT(Said(), IsEmpty());
  Release(here);
  EXPECT_THAT(Said(),
              ElementsAre("Restored request=9 session=2 tenant=2 bytes=1100"));
}

TEST_F(ClaimTest, OneThatLacksGuaranteesLetsSoftOnesPassAndNotHardOnes) {
  Guarantee(kA, 600);
  Take(kC, 200);
  // 824 are free, 224 of them for hard leases.
  Do(Acquire{.request = RequestId{++last_request_},
             .session = SessionId{kB.value},
             .tenant = kB,
             .pool = kPool,
             .bytes = 300,
             .deadline = now_ + kHour});
  EXPECT_THAT(Said(), ElementsAre("Waiting request=2 ahead=0"));
  At(milliseconds(1500));
  EXPECT_FALSE(Take(kC, 10));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 86));
  EXPECT_TRUE(OnlyDenied().claimed);
  EXPECT_TRUE(Soft(kC, 524));
  EXPECT_FALSE(Soft(kC, 1));
  At(milliseconds(2500));
  EXPECT_TRUE(Take(kC, 10));
}

TEST_F(ClaimTest, BehindItTheFirstThatLacksBytesIsAHeadAsWell) {
  Guarantee(kA, 600);
  Take(kC, 200);
  Do(Acquire{.request = RequestId{++last_request_},
             .session = SessionId{kB.value},
             .tenant = kB,
             .pool = kPool,
             .bytes = 300,
             .deadline = now_ + kHour});
  At(seconds(1) + milliseconds(100));
  WaitSoft(kD, 900);
  EXPECT_TRUE(Passes(kC));
  At(seconds(2) + milliseconds(200));
  EXPECT_FALSE(Passes(kC));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 77));
}

TEST_F(ClaimTest, TheFirstThatMayNotBePassedDecidesForAll) {
  Take(kA, 448);
  WaitSoft(kB, 700);
  Take(kC, 1);
  const RequestId second = WaitSoft(kC, 600);
  // The second is never the head, so that it has no windows of its own.
  At(milliseconds(1500));
  EXPECT_FALSE(Passes(kD));
  At(milliseconds(2500));
  EXPECT_TRUE(Passes(kD));
  EXPECT_TRUE(engine_.IsWaiting(second));
}

TEST_F(ClaimTest, ARestoreThatALeaseJoinsKeepsItsWindows) {
  const auto one = Soft(kB, 400), two = Soft(kB, 300);
  Do(Evicted{*one});
  Take(kA, 424);
  WaitFor(kB, {*one});
  At(milliseconds(900));
  Do(Evicted{*two});
  At(milliseconds(1100));
  EXPECT_FALSE(Passes(kC));
}

TEST_F(ClaimTest, ReclaimServesThoseBehindItWhileItLetsThemPass) {
  Take(kA, 200);
  Soft(kC, 700);
  const RequestId head = WaitSoft(kB, 900);
  At(milliseconds(500));
  const RequestId behind = WaitSoft(kD, 300);
  auto shortage = engine_.NextShortage(kPool, 0);
  EXPECT_EQ(shortage->request, head);
  EXPECT_EQ(shortage->collects_from, Instant{} + seconds(1));
  At(milliseconds(1500));
  Do(Tick{});
  shortage = engine_.NextShortage(kPool, 0);
  EXPECT_EQ(shortage->request, head);
  EXPECT_EQ(shortage->lacking_bytes, 776u);
  EXPECT_EQ(shortage->collects_from, Instant{} + seconds(1));
  At(milliseconds(2500));
  Do(Tick{});
  shortage = engine_.NextShortage(kPool, 0);
  EXPECT_EQ(shortage->request, behind);
  EXPECT_EQ(shortage->lacking_bytes, 176u);
  EXPECT_EQ(shortage->collects_from, Instant::Max());
  EXPECT_FALSE(engine_.NextShortage(kPool, 176));  // it is under way
  // Alone it is named, and need not wait for its next hold.
  Do(Cancel{behind});
  shortage = engine_.NextShortage(kPool, 0);
  EXPECT_EQ(shortage->request, head);
  EXPECT_EQ(shortage->collects_from, Instant{} + seconds(3));
}

TEST_F(ClaimTest, ReclaimMakesUpForMissingBytesThatSoftLeasesStandFor) {
  Soft(kA, 1000);
  Do(MissingChanged{kPool, 100});
  WaitSoft(kB, 50);
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->lacking_bytes, 126u);
}

// Others have borrowed what can serve a guarantee all the same.
TEST_F(ClaimTest, ReclaimServesAGuaranteeBesideALeaseThatBecameHard) {
  SetQuota(kA, 500, 1024);
  const auto kept = Soft(kB, 600);
  Soft(kC, 300);
  WaitSoft(kA, 200);
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->lacking_bytes, 76u);
  Do(HardChanged{*kept, true});
  ASSERT_GT(Pool().broken_bytes, 0u);
  ASSERT_TRUE(engine_.NextShortage(kPool, 0));
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->lacking_bytes, 76u);
  Do(MissingChanged{kPool, 50});
  ASSERT_TRUE(engine_.NextShortage(kPool, 0));
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->lacking_bytes, 76u)
      << "nobody makes up for lost bytes";
}

TEST_F(ClaimTest, UnreturnedBytesWithinTheirGuaranteeHideNoShortage) {
  SetQuota(kA, 500, 1024);
  SetQuota(kD, 100, 1024);
  Do(UnreturnedChanged{kPool, kD, 100});
  const auto kept = Soft(kB, 500);
  Soft(kC, 300);
  WaitSoft(kA, 200);  // 124 are free
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->lacking_bytes, 76u);
  Do(HardChanged{*kept, true});
  ASSERT_GT(Pool().broken_bytes, 0u);
  ASSERT_TRUE(engine_.NextShortage(kPool, 0));
  EXPECT_EQ(engine_.NextShortage(kPool, 0)->lacking_bytes, 76u);
}

TEST_F(ClaimTest, ReclaimServesThoseBehindItInAPoolThatHasItsBytes) {
  const auto away = Away(kB, 900, 300);
  Take(kA, 512);
  Soft(kC, 600, kOther);
  WaitFor(kB, away);
  At(milliseconds(1500));
  const RequestId behind = WaitSoft(kD, 400, kOther);
  const auto shortage = engine_.NextShortage(kOther, 0);
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->request, behind);
  EXPECT_EQ(shortage->lacking_bytes, 276u);  // beside 300 that are claimed
}

TEST_F(ClaimTest, ExplainNamesWhomTheBytesAreKeptFor) {
  Take(kA, 512);
  const RequestId head = WaitSoft(kB, 900);
  At(milliseconds(500));
  EXPECT_THAT(engine_.Explain(kC, kPool)->claims, IsEmpty());
  At(milliseconds(1500));
  const RequestId behind = WaitSoft(kC, 64);
  const Explanation why = *engine_.Explain(kC, kPool);
  ASSERT_EQ(why.claims.size(), 1u);
  EXPECT_EQ(why.claims[0].request, head);
  EXPECT_EQ(why.claims[0].tenant, kB);
  EXPECT_EQ(why.claims[0].bytes, 900u);
  EXPECT_FALSE(why.claims[0].within_guarantee);
  EXPECT_EQ(why.claims[0].until, Instant{} + seconds(2));
  ASSERT_EQ(why.waiting.size(), 1u);
  EXPECT_EQ(why.waiting[0].request, behind);
  EXPECT_TRUE(why.waiting[0].claimed);
  EXPECT_EQ(why.waiting[0].deficit_bytes, 452u);
  // The head itself waits for bytes.
  const Explanation own = *engine_.Explain(kB, kPool);
  EXPECT_FALSE(own.waiting[0].claimed);
  EXPECT_EQ(own.waiting[0].deficit_bytes, 388u);
}

TEST_F(ClaimTest, ExplainNamesWhoWaitsWithinItsGuarantee) {
  Guarantee(kA, 600);
  Soft(kB, 900);
  const RequestId within = WaitSoft(kA, 600);
  EXPECT_FALSE(Soft(kC, 24));
  EXPECT_THAT(OnlyDenied(), IsDenied(Reason::kPoolExhausted, 500));
  EXPECT_TRUE(OnlyDenied().claimed);
  const Explanation why = *engine_.Explain(kC, kPool);
  ASSERT_EQ(why.claims.size(), 1u);
  EXPECT_EQ(why.claims[0].request, within);
  EXPECT_TRUE(why.claims[0].within_guarantee);
  EXPECT_EQ(why.claims[0].until, Instant::Max());
}

}  // namespace
}  // namespace gmb::quota
