// Sessions whose pause has failed: for a while they are not paused anew, and
// what they park can be taken all the same (docs/reclaim.md, "What holds the
// broker back").
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "broker/machine/reclaim_rows.h"
#include "broker/machine/verdict_walk.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineSparedTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a", {.pause_grace = seconds(2)});
    SetTenant("owner", {.guarantee = 32});
    busy = Active("a");
    owner = Connect("owner");
  }
  uint64_t AskWithin() { return Ask(owner, 32, {.wait = seconds(60)}); }
  // Of one that is at work: its pause fails.
  uint64_t AskInVain() {
    const uint64_t id = AskWithin();
    RunFor(milliseconds(2010));
    EXPECT_EQ(Events("pause_withdrawn").size(), 1u);
    return id;
  }
  // Why leases stay, as `gmb why` says it to who lacks bytes.
  [[nodiscard]] std::vector<std::string> Why() const {
    const auto shortage = ShortageIn(state(), kPool, true);
    if (!shortage.has_value()) return {"nothing is lacking"};
    VerdictWalk walk(DemandOf(state(), *shortage, world.now()));
    while (!walk.GoOn(state(), world.now(), 1000)) {
    }
    return walk.Finish(state(), world.now()).sentences;
  }
  [[nodiscard]] size_t Pauses() const { return Events("pause_started").size(); }
  SimClient* busy = nullptr;
  SimClient* owner = nullptr;
};

// All of a session's leases are as hard to have as those it was paused for.
TEST_F(MachineSparedTest, ItIsNotPausedForItsOtherLeases) {
  Lease(busy, 30);
  Lease(busy, 30);
  AskInVain();
  RunFor(milliseconds(9900));
  EXPECT_EQ(Pauses(), 1u);
  RunFor(milliseconds(200));
  EXPECT_EQ(Pauses(), 2u) << "and then it is tried anew";
}

TEST_F(MachineSparedTest, NorForALeaseThatItGotMeanwhile) {
  Lease(busy, 40);
  Cancel(owner, AskInVain());
  Lease(busy, 20);
  AskWithin();
  RunFor(seconds(9));
  EXPECT_EQ(Pauses(), 1u);
}

TEST_F(MachineSparedTest, NorForAMemberThatHasJoinedItsGroupMeanwhile) {
  SimClient* one = Active("a", "ranks");
  Lease(one, 40);
  Cancel(owner, AskInVain());
  SimClient* two = Active("a");
  Lease(two, 20);
  ASSERT_EQ(Outcome(two, SetGate(two, true, "ranks")), "gate set");
  AskWithin();
  RunFor(seconds(9));
  EXPECT_EQ(Pauses(), 1u);
}

TEST_F(MachineSparedTest, AGroupThatItWasNotTakenIntoIsNotSparedWithIt) {
  SimClient* one = Active("a", "ranks");
  Cancel(owner, [&] {
    Lease(busy, 40);
    return AskInVain();
  }());
  // Hard, its leases are more than guarantees leave.
  EXPECT_EQ(Outcome(busy, SetGate(busy, false, "ranks")), "OVERCOMMITTED");
  EXPECT_EQ(SessionOf(one).gate->not_paused_before(), quota::Instant{});
}

// Another session uses its lease, too, and is in and out.
TEST_F(MachineSparedTest, OnceClosedItSparesNobodyWhoSharesWithIt) {
  SimClient* other = Active("a");
  Lease(Connect("a"), 20);
  Lease(busy, 20);
  Lease(other, 20, {.share_as = "w"});
  ASSERT_EQ(Outcome(busy, Attach(busy, "w")), "attached");
  AskWithin();
  Park(other);
  Restore(other, seconds(60));
  RunFor(milliseconds(2010));
  ASSERT_TRUE(Enter(other));
  Park(busy);
  RunFor(milliseconds(100));
  EXPECT_TRUE(GateOf(other).paused());
}

// Its pause is another one's, which began earlier: the time of that one is over.
TEST_F(MachineSparedTest, OneWhosePauseBeganLaterIsNotSpared) {
  SetTenant("late", {.guarantee = 32});
  SimClient* other = Active("a");
  Lease(busy, 10);                      // a pause of `busy` alone
  Lease(other, 22, {.share_as = "w"});  // and one of both
  ASSERT_EQ(Outcome(busy, Attach(busy, "w")), "attached");
  Lease(other, 20);
  Ask(owner, 20, {.wait = seconds(60)});  // 12 are free
  ASSERT_TRUE(GateOf(busy).paused());
  ASSERT_FALSE(GateOf(other).paused());
  RunFor(milliseconds(1500));
  Ask(Connect("late"), 32, {.wait = seconds(60)});
  ASSERT_TRUE(GateOf(other).paused());
  RunFor(milliseconds(510));
  EXPECT_GT(SessionOf(busy).gate->not_paused_before(), world.now());
  EXPECT_EQ(SessionOf(other).gate->not_paused_before(), quota::Instant{});
}

// One that is closed, and has the lease still, does not come in meanwhile.
TEST_F(MachineSparedTest, WhoIsClosedWaitsForThePauseOfALeaseThatItHas) {
  SimClient* closed = Active("a");
  const quota::LeaseId own = Lease(closed, 10);
  Lease(busy, 50, {.share_as = "w"});
  ASSERT_EQ(Outcome(closed, Attach(closed, "w")), "attached");
  Park(closed);
  Reclaim("a");
  Work();
  ASSERT_EQ(Where(own), "evicted");
  const uint64_t id = AskWithin();
  ASSERT_TRUE(GateOf(busy).paused());
  Release(closed, own);
  Work();
  EXPECT_FALSE(Enter(closed)) << "its memory is about to be taken";
  Park(busy);
  RunFor(milliseconds(20));
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachineSparedTest, OnceItParksItsMemoryIsTakenAtOnce) {
  const quota::LeaseId one = Lease(busy, 30);
  const quota::LeaseId two = Lease(busy, 30);
  const uint64_t id = AskInVain();
  EXPECT_EQ(Where(one), "mapped");
  EXPECT_EQ(Where(two), "mapped");
  Park(busy);
  RunFor(milliseconds(20));
  EXPECT_EQ(Outcome(owner, id), "granted");
  EXPECT_EQ(Pauses(), 1u);
}

TEST_F(MachineSparedTest, OnceItParksOperatorsHaveItsMemory) {
  Lease(busy, 40);
  Cancel(owner, AskInVain());
  Park(busy);
  const auto reclaimed = Reclaim("a");
  RunFor(milliseconds(50));
  ASSERT_TRUE(reclaimed->has_value());
  ASSERT_TRUE((**reclaimed).ok());
  EXPECT_EQ((**reclaimed)->reclaimed_bytes(), 40 * kGranule);
}

// Its first lease is not the one that it was paused for.
TEST_F(MachineSparedTest, ItIsAskedToTrim) {
  Lease(busy, 10);
  Lease(busy, 40);
  AskInVain();
  SetTrimmable(busy, 30);
  RunFor(milliseconds(10));
  EXPECT_EQ(Told(busy, v1::BrokerMessage::kTrim), 1u);
}

TEST_F(MachineSparedTest, WhoWaitsIsToldThatItIsAtWork) {
  Lease(busy, 30);
  Lease(busy, 30);
  AskInVain();
  EXPECT_EQ(Why(),
            std::vector<std::string>{
                "2 leases of 120.0 MiB: at work, and a pause failed lately: "
                "not paused for a while"});
}

}  // namespace
}  // namespace gmb::broker
