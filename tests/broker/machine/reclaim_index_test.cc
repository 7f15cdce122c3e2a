// The index knows all leases without looking at them. The invariants compare it
// with the leases after every turn; these tests say which counts are right.
#include "broker/machine/reclaim_index.h"

#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ReclaimIndexTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("owner", {.guarantee = 32});
    a = IdOf("a");
  }
  bool IsListed(quota::LeaseId lease) {
    const auto& listed = Index().ListedIn(kPool);
    const auto its = listed.find(a);
    return its != listed.end() && its->second.contains(lease);
  }
  uint64_t Incoming(bool pausing = false) {
    const uint64_t all = Index().IncomingBytes(kPool, {}, pausing) / kGranule;
    EXPECT_EQ(Index().IncomingBytes(kPool, a, pausing) / kGranule, all);
    return all;
  }
  uint64_t Changes() { return Index().changes(kPool, a); }
  quota::TenantId a;
};

TEST_F(ReclaimIndexTest, AtFirstItKnowsNothing) {
  const ReclaimIndex empty;
  EXPECT_TRUE(empty.ListedIn(kPool).empty());
  EXPECT_EQ(empty.IncomingBytes(kPool, {}, true), 0u);
  EXPECT_EQ(empty.changes(kPool), 0u);
  EXPECT_EQ(empty.changes(kPool, quota::TenantId{1}), 0u);
  EXPECT_FALSE(empty.HasOverdue(kPool, quota::TenantId{1}));
  EXPECT_FALSE(empty.AnyAwaitsPause(kPool));
  EXPECT_EQ(empty.answers_due(), quota::Instant::Max());
}

TEST_F(ReclaimIndexTest, LeasesAreListedThatSomebodyMayTakeSomeTime) {
  SimClient* off = Connect("a");
  const quota::LeaseId of_off = Lease(off, 2);
  SimClient* busy = Active("a");
  const quota::LeaseId of_busy = Lease(busy, 2);
  const quota::LeaseId stays = Lease(busy, 2, {.contents = v1::RESIDENT});
  const quota::LeaseId lost = Lease(busy, 2, {.contents = v1::DISCARD});
  EXPECT_FALSE(IsListed(of_off));
  EXPECT_TRUE(IsListed(of_busy)) << "once it has parked";
  EXPECT_FALSE(IsListed(stays));
  EXPECT_TRUE(IsListed(lost));
  Park(off);
  SetGate(off, true);
  EXPECT_TRUE(IsListed(of_off));
  EXPECT_TRUE(Enter(off));
  SetGate(off, false);
  EXPECT_FALSE(IsListed(of_off));
  Release(busy, lost);
  EXPECT_FALSE(IsListed(lost));
}

TEST_F(ReclaimIndexTest, ASessionsFirstLeaseOfItsOwnIsNotOneThatIsShared) {
  SimClient* client = Parked("a");
  const auto first = [&] { return Index().FirstOwn(kPool, client->session); };
  EXPECT_EQ(first(), std::nullopt);
  const quota::LeaseId shared = Lease(client, 2, {.share_as = "x"});
  EXPECT_EQ(first(), std::nullopt);
  const quota::LeaseId one = Lease(client, 2);
  const quota::LeaseId two = Lease(client, 2);
  SimClient* other = Parked("a");
  EXPECT_EQ(Outcome(other, Attach(other, "x")), "attached");
  EXPECT_EQ(Index().FirstOwn(kPool, other->session), std::nullopt);
  EXPECT_EQ(first(), one);
  EXPECT_EQ(Index().FirstOwn(quota::PoolId{2}, client->session), std::nullopt);
  Reclaim("a");
  Work();
  EXPECT_EQ(Where(one), "evicted");
  EXPECT_EQ(first(), one) << "it is away, and the session's";
  Release(client, one);
  EXPECT_EQ(first(), two);
  Release(client, two);
  EXPECT_EQ(first(), std::nullopt);
  Release(client, shared);
}

TEST_F(ReclaimIndexTest, WhatIsAwayIsNotListedUntilItIsBack) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 4);
  Reclaim("a");
  EXPECT_TRUE(IsListed(lease)) << "it may fail to leave";
  Work();
  EXPECT_FALSE(IsListed(lease));
  Restore(idle);
  Work();
  EXPECT_TRUE(IsListed(lease));
}

TEST_F(ReclaimIndexTest, WhatLeavesIsOnItsWayUntilItsAnswerIsOverdue) {
  SimClient* idle = Parked("a");
  stubborn.insert(idle);
  Lease(idle, 4);
  EXPECT_EQ(Incoming(), 0u);
  EXPECT_EQ(Index().answers_due(), quota::Instant::Max());
  Reclaim("a");
  EXPECT_EQ(Incoming(), 4u);
  EXPECT_GT(Index().answers_due(), world.now());
  EXPECT_LT(Index().answers_due(), world.now() + seconds(3));
  RunFor(seconds(3));
  EXPECT_EQ(Incoming(), 0u) << "it does not count as coming any more";
  EXPECT_TRUE(Index().HasOverdue(kPool, a));
  EXPECT_EQ(Index().answers_due(), quota::Instant::Max());
  Follow(idle);
  EXPECT_FALSE(Index().HasOverdue(kPool, a));
}

TEST_F(ReclaimIndexTest, WhatAPauseWillFreeCountsWithThePauses) {
  SimClient* busy = Active("a");
  Lease(busy, 40);
  SimClient* owner = Connect("owner");
  const uint64_t id = Ask(owner, 32, {.wait = seconds(60)});
  ASSERT_TRUE(GateOf(busy).paused());
  EXPECT_TRUE(Index().AnyAwaitsPause(kPool));
  EXPECT_EQ(Incoming(/*pausing=*/false), 0u);
  EXPECT_EQ(Incoming(/*pausing=*/true), 40u);
  Cancel(owner, id);
  EXPECT_FALSE(Index().AnyAwaitsPause(kPool));
  EXPECT_EQ(Incoming(/*pausing=*/true), 0u);
}

TEST_F(ReclaimIndexTest, WhatAKilledProcessHoldsIsOnItsWayForASecond) {
  SetTenant("a", {.may_terminate = true});
  SimClient* liar = Parked("a");
  stubborn.insert(liar);
  Lease(liar, 40);
  SimClient* owner = Connect("owner");
  Ask(owner, 32, {.wait = seconds(60)});
  RunCopies();
  for (int i = 0; i < 2000 && !liar->ended; ++i)
    world.Advance(milliseconds(10));
  ASSERT_TRUE(liar->ended);
  EXPECT_EQ(Incoming(), 40u);
  world.Advance(milliseconds(1001));
  EXPECT_EQ(Incoming(), 0u) << "it hangs in the kernel";
  End(liar);
  RunDevice();
  EXPECT_EQ(owner->granted, 1u);
}

TEST_F(ReclaimIndexTest, WhatCouldHelpSomebodyIsAChange) {
  SimClient* idle = Parked("a");
  quota::LeaseId lease;
  uint64_t seen = Changes();
  const auto expect_change = [&](const char* what) {
    EXPECT_GT(Changes(), seen) << what;
    seen = Changes();
    EXPECT_GE(Index().changes(kPool), seen) << "the pool's with it";
  };
  lease = Lease(idle, 4);
  expect_change("a lease came");
  Reclaim("a");
  expect_change("a move began");
  Work();
  expect_change("a move ended");
  Restore(idle);
  Work();
  expect_change("it came back");
  SetTenant("a", {.limit = 50});
  expect_change("a quota changed");
  SetTrimmable(idle, 2);
  expect_change("it has something to give");
  Release(idle, lease);
  expect_change("it ended");
}

TEST_F(ReclaimIndexTest, WhatLeavesIsAChangeButNoGain) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 4, {.contents = v1::DISCARD});
  const quota::LeaseId other = Lease(idle, 4, {.contents = v1::DISCARD});
  uint64_t gains = Index().gains(kPool);
  EXPECT_GT(gains, 0u) << "leases came";
  uint64_t changes = Changes();
  Reclaim("a", 4);
  Work();
  ASSERT_EQ(Where(lease) == "evicted", Where(other) != "evicted");
  EXPECT_GT(Changes(), changes) << "somebody may have what it wanted";
  EXPECT_EQ(Index().gains(kPool), gains);
  Restore(idle);
  Work();
  EXPECT_GT(Index().gains(kPool), gains);
  gains = Index().gains(kPool);
  changes = Changes();
  Release(idle, other);
  EXPECT_GT(Changes(), changes);
  EXPECT_EQ(Index().gains(kPool), gains);
}

TEST_F(ReclaimIndexTest, WhatFailedToLeaveIsAGain) {
  SimClient* idle = Parked("a");
  stubborn.insert(idle);
  Lease(idle, 4, {.contents = v1::DISCARD});
  Reclaim("a");
  const uint64_t gains = Index().gains(kPool);
  RefuseMoves(idle);
  EXPECT_GT(Index().gains(kPool), gains);
}

TEST_F(ReclaimIndexTest, RoomInTheHostPoolThatIsGivenUpIsAGain) {
  SimClient* busy = Active("a");
  Lease(busy, 4);
  const uint64_t gains = Index().gains(kPool);
  EXPECT_EQ(Outcome(busy, SetGate(busy, false)), "gate set");
  EXPECT_EQ(InHostPool("a").reserved_bytes, 0u);
  EXPECT_GT(Index().gains(kPool), gains) << "a lease without room may have it";
}

TEST_F(ReclaimIndexTest, WhoLeavesItsGroupIsAGain) {
  for (const bool ends : {false, true}) {
    SimClient* busy = Active("a", "g");
    Lease(Parked("a", "g"), 4);
    const uint64_t gains = Index().gains(kPool);
    ends ? End(busy) : (void)SetGate(busy, false);
    EXPECT_GT(Index().gains(kPool), gains)
        << "the others may be taken: " << ends;
  }
}

TEST_F(ReclaimIndexTest, NothingThatHelpsIsNoChange) {
  SimClient* idle = Parked("a");
  Lease(idle, 4);
  const uint64_t seen = Index().changes(kPool);
  SimClient* off = Connect("owner");
  RunFor(milliseconds(500));
  v1::ClientMessage message;
  message.mutable_get_quota();
  Send(off, message);
  NewStream(off);
  EXPECT_EQ(Index().changes(kPool), seen);
}

}  // namespace
}  // namespace gmb::broker
