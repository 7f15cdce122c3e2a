// Sessions that begin to come back while others still leave (docs/eviction.md,
// "Restoring").
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A pool of 64 granules: two leases of 20 are away, and another session is
// parked with two of 20, so that one of these has to leave.
class MachineWakeInPartTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    SetTenant("c");
    idle = Parked("a");
    one = Lease(idle, 20);
    two = Lease(idle, 20);
    Write(idle, one, 1000);
    Write(idle, two, 2000);
    Reclaim("a");
    Work();
    ASSERT_EQ(Where(one), "evicted");
    ASSERT_EQ(Where(two), "evicted");
    other = Parked("b");
    leaving = Lease(other, 20);
    staying = Lease(other, 20);
    world.Advance(seconds(1));
  }
  std::string WhereAll() { return Where(one) + " " + Where(two); }

  SimClient* idle = nullptr;
  SimClient* other = nullptr;
  quota::LeaseId one{}, two{}, leaving{}, staying{};
};

TEST_F(MachineWakeInPartTest, TheFirstLeaseIsFilledWhileRoomIsMade) {
  const uint64_t id = Restore(idle);
  EXPECT_EQ(Events("evict_started").size(), 3u) << "two before, and one now";
  EXPECT_EQ(WhereAll(), "restoring evicted");
  RunDevice();
  EXPECT_EQ(Outcome(idle, id), "nothing");
  Work();
  EXPECT_EQ(Outcome(idle, id), "restored");
  EXPECT_EQ(WhereAll(), "mapped mapped");
  EXPECT_EQ(Read(idle, one).front(), 1000u);
  EXPECT_EQ(Read(idle, two).front(), 2000u);
}

TEST_F(MachineWakeInPartTest, TheGateStaysClosedUntilAllIsBack) {
  stubborn.insert(other);
  const uint64_t id = Restore(idle);
  Work();
  ASSERT_EQ(WhereAll(), "mapped evicted");
  EXPECT_EQ(Outcome(idle, id), "nothing");
  EXPECT_TRUE(IsClosed(idle));
  EXPECT_FALSE(Enter(idle));
}

// It is idle for the longest time, and needs no copy.
TEST_F(MachineWakeInPartTest, WhatIsBackIsNotTakenBeforeItWasUsed) {
  SetTenant("c", {.guarantee = 40});
  stubborn.insert(other);
  const uint64_t id = Restore(idle, seconds(60));
  Work();
  ASSERT_EQ(WhereAll(), "mapped evicted");
  SimClient* third = Connect("c");
  Ask(third, 40, {.wait = seconds(60)});
  EXPECT_EQ(Where(one), "mapped");
  // A session that does not come back after all keeps nothing from others.
  RunFor(seconds(30));
  EXPECT_EQ(Where(one), "evicted");
  EXPECT_EQ(Outcome(idle, id), "nothing");
}

// Or one could keep its memory from others by a lease that it never maps.
TEST_F(MachineWakeInPartTest, AWakeThatFailsGivesTheNextOneNoMoreTime) {
  stubborn.insert(other);
  const auto until = [&] { return SessionOf(idle).waking->coming_until; };
  for (int attempt = 0; attempt < 3; ++attempt) {
    const quota::Instant before = until();
    const uint64_t id = Restore(idle, seconds(60));
    RunDevice();
    RunCopies(/*fail=*/true);
    Follow(idle);
    ASSERT_EQ(Outcome(idle, id), "DEVICE_ERROR");
    Work();
    if (attempt > 0) {
      EXPECT_EQ(until(), before);
    }
  }
  stubborn.clear();
  const uint64_t id = Restore(idle, seconds(60));
  Work();
  ASSERT_EQ(Outcome(idle, id), "restored");
  EXPECT_EQ(until(), quota::Instant{});
}

// Of one that has all of its bytes: what was on the device all the time.
TEST_F(MachineWakeInPartTest, WhatStayedIsNotTakenWhileTheRestComesBack) {
  Release(idle, two);
  End(other);
  Work();
  SimClient* half = Parked("c");
  const quota::LeaseId stays = Lease(half, 16);
  const quota::LeaseId goes = Lease(half, 4);
  world.Advance(seconds(1));
  SimClient* later = Parked("b");
  Lease(later, 20);
  Lease(later, 20);
  world.Advance(seconds(1));
  Reclaim("c", 4);
  Work();
  ASSERT_EQ(Where(stays), "mapped");
  ASSERT_EQ(Where(goes), "evicted");
  Restore(half);
  ASSERT_EQ(Where(goes), "restoring");
  Restore(idle);
  EXPECT_EQ(Where(stays), "mapped") << "it is the longest idle";
  EXPECT_EQ(Where(one), "evicted") << "others leave for it";
  EXPECT_GT(Index().IncomingBytes(kPool, {}, false), 0u);
}

TEST_F(MachineWakeInPartTest, AnEvictionThatFailsLeavesTheRestWaiting) {
  const uint64_t id = Restore(idle);
  ASSERT_EQ(WhereAll(), "restoring evicted");
  RunDevice();
  Follow(idle);
  RefuseMoves(other);
  Work();
  EXPECT_EQ(Outcome(idle, id), "restored") << "from the other's next lease";
  EXPECT_EQ(Read(idle, one).front(), 1000u);
}

TEST_F(MachineWakeInPartTest, SlabsThatCannotBeMadeAreAnAnswerInTheEnd) {
  stubborn.insert(other);
  // The free slabs are kept for that one for a while, so that others are made.
  SimClient* third = Connect("c");
  Release(third, Lease(third, 24));
  const uint64_t id = Restore(idle, seconds(60));
  const int attempts = FailCreatesUntilAnswered(idle, id);
  EXPECT_EQ(Outcome(idle, id), "DEVICE_ERROR");
  EXPECT_LE(attempts, 4);
  EXPECT_EQ(Waiting(), 0u);
  world.device(kPool).FailNextCreate(absl::OkStatus());
  stubborn.clear();
  RunDevice();
  const uint64_t again = Restore(idle);
  Work();
  EXPECT_EQ(Outcome(idle, again), "restored");
  EXPECT_EQ(Read(idle, one).front(), 1000u);
}

TEST_F(MachineWakeInPartTest, ACopyThatFailsIsAnAnswerAndTheContentsStay) {
  stubborn.insert(other);
  const uint64_t id = Restore(idle, seconds(60));
  RunDevice();
  RunCopies(/*fail=*/true);
  Follow(idle);
  EXPECT_EQ(Outcome(idle, id), "DEVICE_ERROR");
  EXPECT_EQ(Waiting(), 0u);
  stubborn.clear();
  Work();
  EXPECT_EQ(WhereAll(), "evicted evicted");
  const uint64_t again = Restore(idle);
  Work();
  EXPECT_EQ(Outcome(idle, again), "restored");
  EXPECT_EQ(Read(idle, one).front(), 1000u);
  EXPECT_EQ(Read(idle, two).front(), 2000u);
}

TEST_F(MachineWakeInPartTest, ItsTimeIsOverInTheMiddle) {
  stubborn.insert(other);
  const uint64_t id = Restore(idle, seconds(1));
  RunFor(milliseconds(1100));
  EXPECT_EQ(Outcome(idle, id), "POOL_EXHAUSTED");
  EXPECT_EQ(WhereAll(), "mapped evicted");
  stubborn.clear();
  const uint64_t again = Restore(idle);
  Work();
  EXPECT_EQ(Outcome(idle, again), "restored");
}

TEST_F(MachineWakeInPartTest, ASessionThatEndsInTheMiddleLeavesNothing) {
  for (int step = 0; step < 3; ++step) {
    Restore(idle, seconds(60));
    ASSERT_EQ(WhereAll(), "restoring evicted") << step;
    if (step > 0) RunDevice();
    if (step > 1) RunCopies();
    End(idle);
    Work();
    EXPECT_EQ(Where(one), "gone") << step;
    EXPECT_EQ(Waiting(), 0u) << step;
    EXPECT_EQ(Of("a").leased_bytes, 0u) << step;
    EXPECT_EQ(InHostPool("a").reserved_bytes, 0u) << step;
    End(other);
    Work();
    SetUp();
  }
}

// A device that gives its leases away gets none piece by piece: each piece
// would go and come until the rest is there.
TEST_F(MachineWakeInPartTest, WhatIsDrainedDoesNotComeAndGo) {
  stubborn.insert(other);
  Restore(idle, seconds(60));
  ASSERT_EQ(WhereAll(), "restoring evicted");
  ASSERT_TRUE(Drain(true).ok());
  RunFor(seconds(3));
  EXPECT_LE(Events("evict_started").size(), 5u);
  EXPECT_LE(Events("restore_started").size(), 1u);
}

TEST_F(MachineWakeInPartTest, WhatAnOperatorTakesDoesNotComeAndGo) {
  stubborn.insert(other);
  Restore(idle, seconds(60));
  ASSERT_EQ(WhereAll(), "restoring evicted");
  Reclaim("a", ReclaimWish{.granules = 60, .wait = seconds(10)});
  RunFor(seconds(3));
  EXPECT_LE(Events("evict_started").size(), 5u);
  EXPECT_LE(Events("restore_started").size(), 1u);
}

TEST_F(MachineWakeInPartTest, WhatHasToDepartDoesNotComeAndGo) {
  stubborn.insert(other);
  Restore(idle, seconds(60));
  ASSERT_EQ(WhereAll(), "restoring evicted");
  const auto departed = Depart("a", seconds(10));
  RunFor(seconds(3));
  EXPECT_LE(Events("evict_started").size(), 5u);
  EXPECT_LE(Events("restore_started").size(), 1u);
}

// It takes parked memory each 20 ms, and the first lease is back before the last
// one: the session comes in all the same.
TEST_F(MachineWakeInPartTest, APoolThatDrainsLetsASessionOfSeveralLeasesIn) {
  End(other);
  Work();
  Lease(Active("b"), 8);  // so that it goes on
  ASSERT_TRUE(Drain(true).ok());
  const uint64_t id = Restore(idle, seconds(60));
  for (int i = 0; i < 400 && Outcome(idle, id) == "nothing"; ++i) {
    world.StepDevice(kPool);
    world.StepCopy(/*out=*/i % 2 == 0, /*fail=*/false);
    Follow(idle);
    world.Advance(milliseconds(30));
  }
  EXPECT_EQ(Outcome(idle, id), "restored");
}

// A group's, by the word of the member that waits the longest.
TEST_F(MachineWakeInPartTest, OfAGroupSlabsThatCannotBeMadeAreAnAnswer) {
  End(idle);
  End(other);
  Work();
  SimClient* first = Parked("a", "ranks");
  SimClient* second = Parked("a", "ranks");
  one = Lease(first, 20);
  two = Lease(second, 20);
  Reclaim("a");
  Work();
  ASSERT_EQ(WhereAll(), "evicted evicted");
  other = Parked("b");
  Lease(other, 20);
  Lease(other, 20);
  world.Advance(seconds(1));
  stubborn.insert(other);
  SimClient* third = Connect("c");
  Release(third, Lease(third, 24));
  const uint64_t id = Restore(second, seconds(60));
  ASSERT_EQ(WhereAll(), "restoring evicted");
  const int attempts = FailCreatesUntilAnswered(second, id);
  EXPECT_EQ(Outcome(second, id), "DEVICE_ERROR");
  EXPECT_LE(attempts, 4);
  EXPECT_EQ(Waiting(), 0u);
}

// After one whose wait ended before its leases failed to come.
TEST_F(MachineWakeInPartTest, TheNextWakeKeepsWhatComesAnew) {
  Release(other, leaving);
  Work();
  SimClient* third = Connect("c");
  Release(third, Lease(third, 44));
  Restore(idle, milliseconds(100));
  ASSERT_EQ(WhereAll(), "restoring restoring");
  world.Advance(milliseconds(200));
  for (int i = 0; i < 2; ++i) {
    world.device(kPool).FailNextCreate(absl::InternalError("the bus"));
    world.StepDevice(kPool);
  }
  world.device(kPool).FailNextCreate(absl::OkStatus());
  ASSERT_EQ(WhereAll(), "evicted evicted");
  Work();
  RunFor(seconds(20));
  Restore(idle, seconds(10));
  ASSERT_EQ(WhereAll(), "restoring restoring");
  EXPECT_GT(SessionOf(idle).waking->coming_until, world.now());
}

}  // namespace
}  // namespace gmb::broker
