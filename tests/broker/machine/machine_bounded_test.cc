// How often the leases are looked at for somebody who lacks bytes: counted, in
// simulated time.
#include <chrono>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "quota/shortlist.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

MachineWorld WithoutPauses(uint64_t granules) {
  MachineWorld shape{.granules = granules, .host_granules = granules};
  shape.options.max_sessions = 2000;
  shape.options.planner.pause = false;
  return shape;
}

class MachineBoundedTest : public MachineFixture {
 protected:
  explicit MachineBoundedTest(uint64_t granules = 16)
      : MachineFixture(WithoutPauses(granules)) {}

  void Acquire(SimClient* client, uint64_t granules) {
    Ask(client, granules, {.wait = std::chrono::hours(1)});
    RunDevice();
  }
  // At work, with so much.
  SimClient* Worker(const std::string& tenant, uint64_t granules) {
    SimClient* client = Active(tenant);
    Acquire(client, granules);
    return client;
  }
  template <typename Each>
  void Wait(std::chrono::nanoseconds time, const Each& each) {
    const quota::Instant end = world.now() + time;
    while (world.machine().NextDue(world.now()) < end &&
           world.problem().empty()) {
      world.AdvanceToDue();
      RunDevice();
      each();
    }
  }
  // The look begins its count anew with every demand.
  struct Count {
    uint64_t last = 0;
    uint64_t all = 0;
    void See(const Look& look) {
      all += look.times() < last ? look.times() : look.times() - last;
      last = look.times();
    }
  };
};

TEST_F(MachineBoundedTest, WhoCannotBeServedIsPlannedForSomeTimesOnly) {
  SetTenant("a");
  SetTenant("b");
  Worker("a", 16);
  Count count;
  Acquire(Connect("b"), 8);
  Wait(std::chrono::seconds(60), [&] { count.See(LookAt()); });
  ASSERT_EQ(Waiting(), 1u);
  EXPECT_GE(count.all, 1u);
  EXPECT_LE(count.all, 100u) << "60 s, of which each look could be 5 ms apart";
}

TEST_F(MachineBoundedTest, ALimitWithNothingToTakeSleepsAndWakes) {
  SetTenant("a");
  SimClient* worker = Worker("a", 16);
  SetTenant("a", {.limit = 8});
  ASSERT_EQ(state().standing->size(), 1u);
  Count count;
  Wait(std::chrono::seconds(60),
       [&] { count.See(state().standing->front().look); });
  EXPECT_LE(count.all, 20u);
  Park(worker);
  const quota::Instant parked = world.now();
  while (worker->moves.empty() &&
         world.now() < parked + std::chrono::seconds(1)) {
    world.AdvanceToDue();
  }
  ASSERT_FALSE(worker->moves.empty()) << "the limit was not enforced";
  EXPECT_LE((world.now() - parked).count(), 20'000'000);
}

// Memory that is wanted back may come later if nobody's guarantee needs it.
TEST_F(MachineBoundedTest, GatesAreReadNoMoreOftenThanTheyHaveTo) {
  SetTenant("a");
  SetTenant("owner", {.guarantee = 4});
  for (int i = 0; i < 16; ++i) Worker("a", 1);
  SetTenant("a", {.limit = 8});
  const auto reads_a_second = [&] {
    Wait(std::chrono::seconds(1), [] {});
    const uint64_t before = Watch().reads();
    Wait(std::chrono::seconds(10), [] {});
    return (Watch().reads() - before) / 10;
  };
  EXPECT_GE(reads_a_second(), 16 * 50u);
  EXPECT_LE(reads_a_second(), 16 * 63u);
  Acquire(Connect("owner"), 4);
  ASSERT_EQ(Waiting(), 1u);
  EXPECT_GE(reads_a_second(), 16 * 50u);
  EXPECT_LE(reads_a_second(), 16 * 63u);
}

constexpr uint64_t kMany = 500;

class MachineManyGatesTest : public MachineBoundedTest {
 protected:
  MachineManyGatesTest() : MachineBoundedTest(kMany) { world.CheckEvery(100); }
};

TEST_F(MachineManyGatesTest, TheOneThatParksIsNoticedSoon) {
  SetTenant("a");
  SetTenant("owner", {.guarantee = 10});
  std::vector<SimClient*> workers;
  for (uint64_t i = 0; i < kMany; ++i) workers.push_back(Worker("a", 1));
  Acquire(Connect("owner"), 10);
  Wait(std::chrono::seconds(30), [] {});
  for (const size_t which : {size_t{0}, kMany / 2, kMany - 1}) {
    Park(workers[which]);
    const quota::Instant parked = world.now();
    while (workers[which]->moves.empty() &&
           world.now() < parked + std::chrono::seconds(1)) {
      world.AdvanceToDue();
    }
    EXPECT_LE((world.now() - parked).count(), 20'000'000) << which;
  }
}

// All are at work, and somebody waits for some of theirs.
class MachineWaitsForGatesTest : public MachineManyGatesTest {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("owner", {.guarantee = 10});
    for (uint64_t i = 0; i < kMany; ++i) workers.push_back(Worker("a", 1));
    Acquire(Connect("owner"), 10);
    Wait(std::chrono::seconds(30), [] {});
    looks = LookAt().times();
    ASSERT_GE(looks, 1u);
  }
  // How long until it is asked for its lease; all of a second: it is not.
  std::chrono::nanoseconds NoticeAfter(SimClient* parks) {
    Park(parks);
    const quota::Instant parked = world.now();
    while (parks->moves.empty() &&
           world.now() < parked + std::chrono::seconds(1)) {
      world.AdvanceToDue();
    }
    return world.now() - parked;
  }

  std::vector<SimClient*> workers;
  uint64_t looks = 0;
};

TEST_F(MachineWaitsForGatesTest, TheOneThatParksIsTakenWithoutAnotherLook) {
  EXPECT_LE(NoticeAfter(workers[kMany / 2]), std::chrono::milliseconds(20));
  EXPECT_EQ(LookAt().times(), looks);
  EXPECT_FALSE(LookAt().under_way());
}

TEST_F(MachineWaitsForGatesTest, AfterWhatLeavesNobodyLooksAgain) {
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_LE(NoticeAfter(workers[i]), std::chrono::milliseconds(20)) << i;
    Work();
    EXPECT_FALSE(LookAt().under_way()) << i;
  }
  EXPECT_EQ(Waiting(), 1u);
  EXPECT_EQ(LookAt().times(), looks);
}

// Many leases that are taken at once are taken some in a turn, and without a
// pause.
class MachineTakesManyTest : public MachineBoundedTest {
 protected:
  static constexpr uint64_t kParked = 200;
  MachineTakesManyTest() : MachineBoundedTest(kParked) {
    world.CheckEvery(100);
  }
  void SetUp() override {
    SetTenant("a");
    for (uint64_t i = 0; i < kParked; ++i) Lease(Parked("a"), 1);
    RunFor(std::chrono::seconds(1));
  }
  // Until all of them are on their way.
  void ExpectAllTaken(quota::Nanoseconds within) {
    const quota::Instant begin = world.now();
    EXPECT_LE(Taken(), LookBudget::kMostTaken);
    for (uint64_t taken = Taken(); taken < kParked;) {
      world.AdvanceToDue();
      ASSERT_GT(Taken(), taken);
      EXPECT_LE(Taken() - taken, LookBudget::kMostTaken);
      taken = Taken();
    }
    EXPECT_LE(world.now() - begin, within);
  }
  uint64_t Taken() { return Events("evict_started").size(); }
};

TEST_F(MachineTakesManyTest, ForARequest) {
  SetTenant("owner", {.guarantee = kParked});
  Ask(Connect("owner"), kParked, {.wait = std::chrono::hours(1)});
  ExpectAllTaken(std::chrono::milliseconds(1));
}

TEST_F(MachineTakesManyTest, ForAnOperator) {
  Reclaim("a", kParked);
  ExpectAllTaken(std::chrono::seconds(1));
}

// Leases that one look has no room for are looked for again before anybody is
// told that no more can be had.
class MachineTakesMoreThanALookTest : public MachineBoundedTest {
 protected:
  static constexpr uint64_t kParked = quota::Shortlist::kLongest + 50;
  MachineTakesMoreThanALookTest() : MachineBoundedTest(kParked) {
    world.CheckEvery(100);
  }
};

TEST_F(MachineTakesMoreThanALookTest, ForAnOperator) {
  SetTenant("a");
  for (uint64_t i = 0; i < kParked; ++i) Lease(Parked("a"), 1);
  RunFor(std::chrono::seconds(1));
  const auto answer = Reclaim("a", kParked);
  RunFor(std::chrono::seconds(5));
  ASSERT_TRUE(answer->has_value());
  ASSERT_TRUE((*answer)->ok()) << (*answer)->status();
  EXPECT_EQ((**answer)->reclaimed_bytes(), kParked * kGranule)
      << (**answer)->ShortDebugString();
}

}  // namespace
}  // namespace gmb::broker
