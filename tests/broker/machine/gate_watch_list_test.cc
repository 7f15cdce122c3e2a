// Gates that are read because somebody lacks bytes (docs/reclaim.md, "When the
// broker looks again").
#include "broker/machine/gate_watch_list.h"

#include <chrono>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class GateWatchListTest : public MachineFixture {
 protected:
  // Without pauses, which have looks of their own.
  static MachineWorld Shape() {
    MachineWorld shape;
    shape.options.planner.pause = false;
    return shape;
  }
  GateWatchListTest() : MachineFixture(Shape()) {}
  void SetUp() override {
    SetTenant("a");
    SetTenant("owner", {.guarantee = 60});
    busy = Active("a");
    lease = Lease(busy, 40);
    owner = Parked("owner");
  }
  size_t Watched() { return Watch().size(); }
  SimClient* busy = nullptr;
  SimClient* owner = nullptr;
  quota::LeaseId lease;
};

TEST_F(GateWatchListTest, NobodyIsWatchedWhileNobodyLacks) {
  EXPECT_EQ(Watched(), 0u);
  EXPECT_EQ(Watch().due(), quota::Instant::Max());
}

TEST_F(GateWatchListTest, WhoIsAtWorkIsWatchedEveryFewMilliseconds) {
  Ask(owner, 40, {.wait = seconds(60)});
  EXPECT_EQ(Watched(), 1u);
  RunFor(milliseconds(100));
  EXPECT_LE(Watch().due(), world.now() + milliseconds(16));
  EXPECT_LE(world.machine().NextDue(world.now()),
            world.now() + milliseconds(16));
}

TEST_F(GateWatchListTest, OneThatHasParkedIsWatchedNoMore) {
  Ask(owner, 40, {.wait = seconds(60)});
  RunFor(milliseconds(100));
  Park(busy);
  world.Advance(milliseconds(16));
  EXPECT_EQ(Where(lease), "evicting");
  EXPECT_EQ(Watched(), 0u);
}

TEST_F(GateWatchListTest, NobodyIsWatchedForWhoHasGivenUp) {
  const uint64_t id = Ask(owner, 40, {.wait = seconds(60)});
  ASSERT_EQ(Watched(), 1u);
  Cancel(owner, id);
  world.Advance(milliseconds(16));
  EXPECT_EQ(Watched(), 0u);
}

TEST_F(GateWatchListTest, OneThatHasEndedIsForgotten) {
  Lease(Active("a"), 20);
  Ask(owner, 60, {.wait = seconds(60)});
  ASSERT_EQ(Watched(), 2u);
  End(busy);
  EXPECT_EQ(Watched(), 1u);
}

TEST_F(GateWatchListTest, AllWhoUseALeaseAreWatched) {
  SimClient* writer = Parked("a");
  Lease(writer, 20, {.share_as = "w"});
  SimClient* reader = Parked("a");
  EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  EXPECT_TRUE(Enter(reader));
  EXPECT_TRUE(Enter(writer));
  Ask(owner, 60, {.wait = seconds(60)});
  EXPECT_EQ(Watched(), 3u);
}

// On a standing demand too: a limit waits for the same thing.
TEST_F(GateWatchListTest, ALimitWatchesItsTenantsGates) {
  SetTenant("a", {.limit = 20});
  EXPECT_EQ(Watched(), 1u);
  SetTenant("a");
  world.Advance(milliseconds(20));
  EXPECT_EQ(Watched(), 0u);
}

// A shrink that no lease can help wants none for the time being.
TEST_F(GateWatchListTest, ADemandThatWantsNothingWatchesNobody) {
  Lease(Connect("a"), 4);  // hard
  ASSERT_TRUE(Resize(60).ok());
  ASSERT_EQ(state().standing->size(), 1u);
  const uint64_t id = Ask(owner, 40, {.wait = seconds(60)});
  EXPECT_EQ(Watched(), 1u);
  Cancel(owner, id);
  world.Advance(milliseconds(20));
  EXPECT_EQ(Watched(), 0u);
  EXPECT_EQ(state().standing->size(), 1u);
}

// One of a group that is parked already would be found so at once, and its
// leases looked at for nothing, again and again.
class HalfParkedGroupTest : public GateWatchListTest {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("owner", {.guarantee = 60});
    parked = Parked("a", "g");
    lease = Lease(parked, 40);
    busy = Active("a", "g");
    owner = Parked("owner");
    Ask(owner, 40, {.wait = seconds(60)});
    RunFor(milliseconds(100));
  }
  SimClient* parked = nullptr;
};

TEST_F(HalfParkedGroupTest, ItIsWatchedForThoseAtWorkAlone) {
  EXPECT_EQ(Watched(), 1u);
  const uint64_t looks = LookAt().times();
  RunFor(seconds(2));
  EXPECT_EQ(Watched(), 1u);
  EXPECT_LE(LookAt().times(), looks + 8) << "there is nothing new to be seen";
}

// A session that has none of the leases says nothing about them.
TEST_F(HalfParkedGroupTest, TheLastOneThatParksIsNoticedSoon) {
  ASSERT_EQ(Where(lease), "mapped");
  Park(busy);
  world.Advance(milliseconds(16));
  EXPECT_EQ(Where(lease), "evicting");
}

}  // namespace
}  // namespace gmb::broker
