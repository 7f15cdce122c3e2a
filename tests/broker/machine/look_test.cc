// How often, and how much at a time, leases are looked at for somebody who
// lacks bytes (docs/reclaim.md, "When the broker looks again").
#include "broker/machine/look.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using quota::Instant;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{1'000'000'000};

// --- How much.

TEST(LookBudgetTest, ATurnLooksAtOneSlice) {
  LookBudget budget;
  budget.BeginTurn(kStart);
  budget.Spend(LookBudget::kSlice - 1);
  EXPECT_TRUE(budget.any_left());
  budget.Spend(1);
  EXPECT_FALSE(budget.any_left());
  budget.BeginTurn(kStart);
  EXPECT_TRUE(budget.any_left()) << "the next turn has its own";
}

TEST(LookBudgetTest, InTheLongRunAHundredThousandASecond) {
  LookBudget budget;
  Instant now = kStart;
  budget.BeginTurn(now);
  uint64_t looked = 0;
  while (now < kStart + seconds(10)) {
    if (budget.MayBegin()) {
      budget.Spend(1000);
      looked += 1000;
    } else {
      now = std::max(budget.BeginsAt(), now + microseconds(1));
    }
    budget.BeginTurn(now);
  }
  EXPECT_GE(looked, 990'000u);
  EXPECT_LE(looked, 1'010'000u);
}

TEST(LookBudgetTest, ManyShortTurnsEarnAsALongOneDoes) {
  LookBudget budget;
  budget.BeginTurn(kStart);
  budget.Spend(4096 + 1000);
  EXPECT_FALSE(budget.MayBegin());
  Instant now = kStart;
  while (!budget.MayBegin() && now < kStart + seconds(1)) {
    now = now + microseconds(3);  // too short to earn one
    budget.BeginTurn(now);
  }
  EXPECT_GE(now - kStart, milliseconds(10)) << "and no more";
  EXPECT_LE(now - kStart, milliseconds(13));
}

TEST(LookBudgetTest, ALongRestSavesNoMoreThanABurst) {
  LookBudget budget;
  budget.BeginTurn(kStart + hours(5));
  budget.Spend(4096);
  EXPECT_FALSE(budget.MayBegin());
  EXPECT_GT(budget.BeginsAt(), kStart + hours(5));
}

TEST(LookBudgetTest, OneThatHasBegunMayGoIntoDebtAndOthersWaitForThat) {
  LookBudget budget;
  budget.BeginTurn(kStart);
  budget.Spend(4095);
  EXPECT_TRUE(budget.MayBegin());
  budget.Spend(100'000);
  EXPECT_FALSE(budget.MayBegin());
  EXPECT_NEAR(static_cast<double>((budget.BeginsAt() - kStart).count()), 1e9,
              1e7);
}

// --- When.

TEST(LookTest, ANewDemandIsLookedAtAtOnce) {
  const Look look;
  EXPECT_TRUE(look.IsDue(0, kStart));
  EXPECT_TRUE(look.IsDue(7, kStart));
  EXPECT_EQ(look.times(), 0u);
}

TEST(LookTest, ThenWhenSomethingHasChangedAndNotBefore) {
  Look look;
  look.Skip(5, kStart);
  EXPECT_FALSE(look.IsDue(5, kStart + milliseconds(1)));
  EXPECT_TRUE(look.IsDue(6, kStart + milliseconds(1)));
}

TEST(LookTest, WithoutAChangeAfterFiftyMillisecondsAndTwiceAsLongEachTime) {
  Look look;
  Instant now = kStart;
  std::vector<int64_t> pauses;
  for (int i = 0; i < 12; ++i) {
    look.Wait(now, Instant::Max());
    EXPECT_FALSE(look.IsDue(0, look.next_at() + quota::Nanoseconds(-1)));
    EXPECT_TRUE(look.IsDue(0, look.next_at()));
    pauses.push_back((look.next_at() - now).count() / 1'000'000);
    now = look.next_at();
  }
  EXPECT_EQ(pauses, (std::vector<int64_t>{50, 100, 200, 400, 800, 1600, 3200,
                                          6400, 10000, 10000, 10000, 10000}));
}

TEST(LookTest, WhenALeaseMayBeAskedIsKnownItIsThen) {
  Look look;
  look.Wait(kStart, kStart + milliseconds(7));
  EXPECT_EQ(look.next_at(), kStart + milliseconds(7));
}

TEST(LookTest, AStepThatIsTakenBeginsThePausesAnew) {
  Look look;
  for (int i = 0; i < 6; ++i) look.Wait(kStart, Instant::Max());
  look.PlanOn();
  EXPECT_TRUE(look.plans_on());
  look.Wait(kStart, Instant::Max());
  EXPECT_EQ(look.next_at(), kStart + milliseconds(50));
  look.Forget();
  EXPECT_FALSE(look.plans_on());
  EXPECT_TRUE(look.IsDue(0, kStart));
}

TEST(LookTest, OneThatIsPutOffHeedsNoChange) {
  Look look;
  look.Postpone(kStart + milliseconds(20));
  EXPECT_FALSE(look.IsDue(99, kStart + milliseconds(19)));
  EXPECT_TRUE(look.IsDue(99, kStart + milliseconds(20)));
}

// --- Over the leases.

class LookWorldTest : public MachineFixture {
 protected:
  // So many leases are not checked after each step.
  LookWorldTest() : MachineFixture({.granules = 640, .host_granules = 640}) {
    world.CheckEvery(100);
  }

  // A look of our own, for a demand within a guarantee; gains are so many.
  void Begin(uint64_t gains) {
    quota::Demand demand;
    demand.cause = quota::Cause::kWithinGuarantee;
    demand.needs = {{kPool, kGranule}};
    look.Begin(demand, gains);
  }
  // Of the session.
  std::vector<quota::LeaseId> MoreThanATurnSees(SimClient* session) {
    std::vector<quota::LeaseId> leases;
    for (int i = 0; i < 600; ++i)
      leases.push_back(Lease(session, 1, {.contents = v1::DISCARD}));
    return leases;
  }
  // One turn of it.
  bool GoOn() {
    LookBudget budget;
    return look.GoOn(state(), kPool, world.now(), {budget, watch});
  }

  Look look;
  GateWatchList watch;
};

TEST_F(LookWorldTest, WhoParksIsPlannedWithAlthoughOtherChangesAreUnknown) {
  SetTenant("a");
  const quota::LeaseId lease = Lease(Active("a"), 1);
  EXPECT_FALSE(look.Add({lease}, {7, 8})) << "nobody has looked yet";
  Begin(7);
  ASSERT_TRUE(GoOn());
  EXPECT_TRUE(look.Add({lease}, {9, 10}));
  EXPECT_TRUE(look.plans_on());
  look.Wait(world.now(), Instant::Max());
  EXPECT_TRUE(look.IsDue(10, world.now())) << "for what came between 7 and 9";
}

TEST_F(LookWorldTest, WhoParksWhileNothingElseChangesNeedsNoLook) {
  SetTenant("a");
  const quota::LeaseId lease = Lease(Active("a"), 1);
  Begin(7);
  ASSERT_TRUE(GoOn());
  EXPECT_TRUE(look.Add({lease}, {7, 8}));
  EXPECT_TRUE(look.plans_on());
  look.Wait(world.now(), Instant::Max());
  EXPECT_FALSE(look.IsDue(8, world.now()));
}

TEST_F(LookWorldTest, WhoParksDuringALookIsPlannedWithBeforeItsEnd) {
  SetTenant("a");
  SimClient* worker = Active("a");
  const std::vector<quota::LeaseId> leases = MoreThanATurnSees(worker);
  Begin(7);
  EXPECT_FALSE(GoOn());
  EXPECT_TRUE(look.Add({leases[0]}, {7, 8}));
  EXPECT_FALSE(look.plans_on()) << "the first look says who comes first";
  while (!GoOn()) continue;
  Begin(8);
  EXPECT_FALSE(GoOn());
  EXPECT_TRUE(look.Add({leases[0]}, {8, 9}));
  EXPECT_TRUE(look.plans_on());
  Park(worker);
  quota::Demand demand;
  demand.cause = quota::Cause::kWithinGuarantee;
  demand.needs = {{kPool, kGranule}};
  const Look::Found found = look.MakePlan(state(), demand, world.now());
  ASSERT_EQ(found.plan.victims.size(), 1u);
  EXPECT_EQ(found.plan.victims[0].lease, leases[0]);
  EXPECT_TRUE(look.under_way());
}

TEST_F(LookWorldTest, MoreThanHaveRoomAreLookedAtAnew) {
  SetTenant("a");
  SimClient* worker = Active("a");
  const std::vector<quota::LeaseId> leases = MoreThanATurnSees(worker);
  Begin(7);
  while (!GoOn()) continue;
  EXPECT_TRUE(look.Add(leases, {7, 8}));
  EXPECT_TRUE(look.plans_on());
  look.Wait(world.now(), Instant::Max());
  EXPECT_TRUE(look.IsDue(8, world.now()));
}

TEST_F(LookWorldTest, ManyMoreThanAPlanSeesAreTakenOneLookAfterTheOther) {
  SetTenant("a");
  SetTenant("b");
  SimClient* idle = Parked("a");
  for (int i = 0; i < 640; ++i) Lease(idle, 1, {.contents = v1::DISCARD});
  SimClient* borrower = Parked("b");
  const uint64_t id = Ask(borrower, 600, {.wait = seconds(60)});
  RunFor(milliseconds(30));
  EXPECT_EQ(Outcome(borrower, id), "granted");
}

TEST_F(LookWorldTest, ManyLeasesAreLookedAtOverSeveralTurns) {
  SetTenant("a");
  SetTenant("b");
  SimClient* idle = Parked("a");
  for (int i = 0; i < 640; ++i) Lease(idle, 1, {.contents = v1::DISCARD});
  SimClient* borrower = Parked("b");
  const uint64_t id = Ask(borrower, 20, {.wait = seconds(60)});
  EXPECT_TRUE(LookAt().under_way());
  EXPECT_TRUE(idle->moves.empty()) << "no plan before all are looked at";
  EXPECT_EQ(world.machine().NextDue(world.now()), world.now());
  world.Advance(quota::Nanoseconds(1));
  EXPECT_TRUE(idle->moves.empty());
  world.Advance(quota::Nanoseconds(1));
  EXPECT_EQ(idle->moves.size(), 20u) << "640 are three slices of 256";
  Work();
  EXPECT_EQ(Outcome(borrower, id), "granted");
}

TEST_F(LookWorldTest, OneThatIsSkippedGoesOnNoMore) {
  SetTenant("a");
  SimClient* worker = Active("a");
  MoreThanATurnSees(worker);
  Begin(7);
  ASSERT_FALSE(GoOn());
  look.Skip(7, world.now());
  EXPECT_FALSE(look.under_way());
  EXPECT_FALSE(look.IsDue(7, world.now()));
  EXPECT_TRUE(look.IsDue(8, world.now()));
}

// Or each turn would ask for the next one at once, without an end.
TEST_F(LookWorldTest, ADrainThatIsMetDuringALookSleeps) {
  SetTenant("a");
  SimClient* worker = Active("a");
  MoreThanATurnSees(worker);
  world.Do("drain", [&](Turn& turn) {
    ASSERT_TRUE(
        world.machine().operators().DrainPool("sim-1", true, turn).ok());
  });
  ASSERT_EQ(state().standing->size(), 1u);
  ASSERT_TRUE(state().standing->front().look.under_way());
  End(worker);
  Work();
  ASSERT_EQ(InPool().charged_bytes, 0u);
  for (int i = 0; i < 10; ++i) world.Advance(quota::Nanoseconds(1));
  ASSERT_EQ(state().standing->size(), 1u);
  EXPECT_FALSE(state().standing->front().look.under_way());
  EXPECT_GT(world.machine().NextDue(world.now()), world.now());
}

TEST_F(LookWorldTest, WhoNeedsNothingAnyMoreIsLookedForNoMore) {
  SetTenant("a");
  SetTenant("b");
  SimClient* idle = Parked("a");
  for (int i = 0; i < 640; ++i) Lease(idle, 1, {.contents = v1::DISCARD});
  SimClient* borrower = Parked("b");
  const uint64_t id = Ask(borrower, 20, {.wait = seconds(60)});
  Cancel(borrower, id);
  EXPECT_FALSE(LookAt().under_way());
  RunFor(seconds(1));
  EXPECT_TRUE(idle->moves.empty());
  EXPECT_EQ(Told(idle, v1::BrokerMessage::kEvict), 0u);
}

}  // namespace
}  // namespace gmb::broker
