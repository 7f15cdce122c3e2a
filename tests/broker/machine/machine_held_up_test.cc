// Pauses of several sessions of which one has parked and waits for another one
// (docs/reclaim.md, "What holds the broker back").
#include <chrono>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineHeldUpTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a", {.pause_grace = seconds(2)});
    SetTenant("owner", {.guarantee = 32});
    owner = Connect("owner");
  }
  // Lacks what others have of that.
  uint64_t AskWithin() { return Ask(owner, 32, {.wait = seconds(120)}); }
  static bool IsPaused(const SimClient* client) {
    return GateOf(client).paused();
  }
  // Of a group: one that parks soon after a pause has begun and wants in again,
  // and one whose scope ends half a second after it has begun.
  struct Pair {
    SimClient* comes = nullptr;
    SimClient* stays = nullptr;
    quota::Instant paused_at = {};
  };
  void RunUntilGranted(uint64_t id, std::vector<Pair> pairs) {
    const quota::Instant until = world.now() + seconds(120);
    for (Pair& pair : pairs) pair.paused_at = world.now();
    while (world.now() < until && Outcome(owner, id) != "granted") {
      for (size_t i = 0; i < pairs.size(); ++i)
        Move(&pairs[i], static_cast<int64_t>(i) * milliseconds(10));
      RunFor(milliseconds(5));
    }
    EXPECT_EQ(Outcome(owner, id), "granted");
  }
  SimClient* owner = nullptr;

 private:
  void Move(Pair* pair, quota::Nanoseconds parks_after) {
    const bool is_in = GateOf(pair->comes).scopes() > 0;
    if (!IsPaused(pair->stays)) {
      pair->paused_at = world.now();
      if (!is_in) (void)Enter(pair->comes);
    } else if (is_in && world.now() >= pair->paused_at + parks_after) {
      Park(pair->comes);
      Restore(pair->comes, seconds(60));
    } else if (world.now() >= pair->paused_at + milliseconds(500)) {
      Park(pair->stays);
    }
  }
};

// The second one may wait on the GPU for what the first one is about to do.
TEST_F(MachineHeldUpTest, AMemberThatHasParkedIsLetInAgainSoon) {
  SimClient* one = Active("a", "ranks");
  SimClient* two = Active("a", "ranks");
  Lease(one, 30);
  Lease(two, 30);
  AskWithin();
  ASSERT_TRUE(IsPaused(two));
  Park(one);
  RunFor(milliseconds(10));
  const uint64_t restore = Restore(one);
  RunFor(milliseconds(90));
  EXPECT_EQ(Outcome(one, restore), "nothing") << "the other one may yet park";
  RunFor(milliseconds(20));
  EXPECT_EQ(Outcome(one, restore), "restored");
  ASSERT_EQ(Events("pause_withdrawn").size(), 1u);
  EXPECT_EQ(Events("pause_withdrawn")[0].message(),
            "another of its group had parked and waits to go on");
  ASSERT_TRUE(Enter(one));
  RunFor(milliseconds(9800));
  EXPECT_EQ(Events("pause_started").size(), 2u)
      << "nor are the others of its leases asked for";
  RunFor(milliseconds(400));
  EXPECT_TRUE(IsPaused(two)) << "and then it is tried anew";
}

// It only shares a lease with the group whose pause has failed.
TEST_F(MachineHeldUpTest, OneThatHadTimeLeftIsPausedForItsOwnLeaseAtOnce) {
  SimClient* one = Active("a", "ranks");
  SimClient* two = Active("a", "ranks");
  SimClient* other = Active("a");
  Lease(two, 20, {.share_as = "w"});
  ASSERT_EQ(Outcome(other, Attach(other, "w")), "attached");
  Lease(other, 20);
  const uint64_t id = AskWithin();
  ASSERT_TRUE(IsPaused(other));
  Park(one);
  Restore(one, seconds(60));
  RunFor(milliseconds(130));
  EXPECT_EQ(Events("pause_withdrawn").size(), 1u);
  EXPECT_TRUE(IsPaused(other));
  EXPECT_FALSE(IsPaused(two));
  Park(other);
  RunFor(milliseconds(20));
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachineHeldUpTest, AGroupThatParksAfterItsPauseIsTakenAtOnce) {
  SimClient* one = Active("a", "ranks");
  SimClient* two = Active("a", "ranks");
  Lease(one, 30);
  Lease(two, 30);
  const uint64_t id = AskWithin();
  Park(one);
  const uint64_t restore = Restore(one);
  RunFor(milliseconds(120));
  ASSERT_EQ(Outcome(one, restore), "restored");
  ASSERT_TRUE(Enter(one));
  Park(one);
  Park(two);
  RunFor(milliseconds(50));
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachineHeldUpTest, AMemberThatAsksAgainHasWaitedAllAlong) {
  SimClient* one = Active("a", "ranks");
  Active("a", "ranks");
  Lease(one, 40);
  AskWithin();
  Park(one);
  const uint64_t first = Restore(one, milliseconds(60));
  RunFor(milliseconds(70));
  EXPECT_EQ(Outcome(one, first), "POOL_EXHAUSTED");
  const uint64_t again = Restore(one, seconds(10));
  RunFor(milliseconds(50));
  EXPECT_EQ(Outcome(one, again), "restored");
}

// It waits for longer each time; the scopes of the second one end half a second
// after a pause begins.
TEST_F(MachineHeldUpTest, AGroupWithLongScopesIsTakenAfterSomeTries) {
  SimClient* one = Active("a", "ranks");
  SimClient* two = Active("a", "ranks");
  Lease(one, 20);
  Lease(two, 20);
  const uint64_t id = AskWithin();
  RunUntilGranted(id, {{.comes = one, .stays = two}});
  EXPECT_EQ(Events("pause_withdrawn").size(), 3u) << "100, 200 and 400 ms";
  EXPECT_EQ(SessionOf(two).gate->held_up(), 0u) << "and it begins anew";
}

// A pause that ends for all of them is one that each of them was held up by.
TEST_F(MachineHeldUpTest, GroupsThatShareALeaseAreTakenAfterAsManyTries) {
  SimClient* one = Active("a", "ranks");
  SimClient* two = Active("a", "ranks");
  SimClient* three = Active("a", "readers");
  SimClient* four = Active("a", "readers");
  Lease(two, 40, {.share_as = "w"});
  ASSERT_EQ(Outcome(four, Attach(four, "w")), "attached");
  const uint64_t id = AskWithin();
  RunUntilGranted(
      id, {{.comes = one, .stays = two}, {.comes = three, .stays = four}});
  EXPECT_EQ(Events("pause_withdrawn").size(), 3u) << "100, 200 and 400 ms";
}

// Nor does one that has parked wait for longer than a pause may last.
TEST_F(MachineHeldUpTest, AGroupThatDoesNotParkInTimeIsTriedAnewFromTheStart) {
  SetTenant("a", {.pause_grace = milliseconds(300)});
  SimClient* one = Active("a", "ranks");
  SimClient* two = Active("a", "ranks");
  Lease(one, 40);
  AskWithin();
  for (const uint32_t held_up : {1u, 2u, 0u}) {
    for (int i = 0; i < 1100 && !IsPaused(two); ++i) RunFor(milliseconds(10));
    ASSERT_TRUE(IsPaused(two));
    Park(one);
    const uint64_t restore = Restore(one, seconds(60));
    RunFor(milliseconds(310));
    EXPECT_FALSE(IsPaused(two));
    EXPECT_EQ(Outcome(one, restore), "restored");
    EXPECT_EQ(SessionOf(two).gate->held_up(), held_up);
    ASSERT_TRUE(Enter(one));
  }
  ASSERT_EQ(Events("pause_withdrawn").size(), 3u);
  EXPECT_EQ(Events("pause_withdrawn")[2].message(),
            "a scope did not end in time");
}

// They do not wait for each other on the GPU.
TEST_F(MachineHeldUpTest, ThoseWhoOnlyShareALeaseHaveAllOfTheGrace) {
  SimClient* one = Active("a");
  SimClient* two = Active("a");
  const quota::LeaseId lease = Lease(one, 40, {.share_as = "w"});
  ASSERT_EQ(Outcome(two, Attach(two, "w")), "attached");
  const uint64_t id = AskWithin();
  ASSERT_TRUE(IsPaused(one));
  ASSERT_TRUE(IsPaused(two));
  Park(one);
  const uint64_t restore = Restore(one, seconds(60));
  RunFor(milliseconds(500));
  EXPECT_TRUE(Events("pause_withdrawn").empty());
  EXPECT_EQ(Outcome(one, restore), "nothing");
  Park(two);
  RunFor(milliseconds(10));
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(Outcome(owner, id), "granted");
}

// Leases that no pause was needed for can be taken as before.
TEST_F(MachineHeldUpTest, AfterAPauseThatFailedWhoIsIdleIsNotLeftAlone) {
  SimClient* busy = Active("a");
  SimClient* idle = Parked("a");
  const quota::LeaseId shared = Lease(busy, 40, {.share_as = "w"});
  ASSERT_EQ(Outcome(idle, Attach(idle, "w")), "attached");
  const quota::LeaseId own = Lease(idle, 2);
  AskWithin();  // lacks 10
  ASSERT_TRUE(IsPaused(idle));
  RunFor(milliseconds(1990));
  ASSERT_EQ(Where(own), "mapped") << "the shared one suffices";
  RunFor(milliseconds(20));
  EXPECT_FALSE(IsPaused(busy));
  EXPECT_EQ(Where(own), "evicted");
  EXPECT_EQ(Where(shared), "mapped");
  RunFor(milliseconds(9900));
  EXPECT_EQ(Events("pause_withdrawn").size(), 1u);
}

}  // namespace
}  // namespace gmb::broker
