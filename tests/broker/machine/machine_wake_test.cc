// Sessions that want their memory back (docs/reclaim.md, "A session that comes
// back"; docs/eviction.md, "Restoring").
#include <chrono>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineWakeTest : public MachineFixture {
 protected:
  explicit MachineWakeTest(const MachineWorld& shape = {})
      : MachineFixture(shape) {}
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    idle = Parked("a");
  }
  // Of `idle`, and away.
  quota::LeaseId Evicted(uint64_t granules, const Wish& wish = {}) {
    const quota::LeaseId lease = Lease(idle, granules, wish);
    Write(idle, lease, 1000 + 100 * lease.value);
    written = Read(idle, lease);
    Reclaim("a", ReclaimWish{.device = wish.device});
    Work();
    EXPECT_EQ(Where(lease), "evicted");
    return lease;
  }
  SimClient* idle = nullptr;
  std::vector<uint64_t> written;
};

TEST_F(MachineWakeTest, WithAnOpenGateItIsAnsweredAtOnce) {
  EXPECT_EQ(Outcome(idle, Restore(idle)), "restored");
  Lease(idle, 4);
  EXPECT_EQ(Outcome(idle, Restore(idle)), "restored");
  EXPECT_EQ(Outcome(idle, Restore(idle, seconds(0))), "restored");
}

TEST_F(MachineWakeTest, ContentsComeBackWhileTheGateIsClosed) {
  const quota::LeaseId lease = Evicted(7);
  const uint64_t bytes = 7 * kGranule;
  const uint64_t id = Restore(idle);
  RunDevice();
  EXPECT_EQ(Where(lease), "restoring");
  ASSERT_EQ(idle->moves.size(), 1u);
  const v1::Map map = idle->moves.front().map();
  EXPECT_EQ(map.bytes(), bytes);
  EXPECT_EQ(map.slabs(), idle->packets.at({0, map.move()}).size())
      << "all its slabs were sent before";
  EXPECT_EQ(idle->frames.back().move(), map.move());
  EXPECT_EQ(idle->frames.back().request_id(), 0u);
  Follow(idle);
  EXPECT_TRUE(IsClosed(idle)) << "it is mapped, and not filled";
  EXPECT_EQ(Outcome(idle, id), "nothing");
  RunCopies();
  EXPECT_EQ(Outcome(idle, id), "restored");
  EXPECT_FALSE(IsClosed(idle));
  EXPECT_EQ(Read(idle, lease), written);
  EXPECT_EQ(Events("restored").size(), 1u);
}

TEST_F(MachineWakeTest, FilledAndNotMappedItIsNotBackEither) {
  const quota::LeaseId lease = Evicted(7);
  const uint64_t id = Restore(idle);
  RunDevice();
  RunCopies();
  EXPECT_EQ(Where(lease), "restoring");
  EXPECT_TRUE(IsClosed(idle));
  Follow(idle);
  EXPECT_EQ(Outcome(idle, id), "restored");
}

TEST_F(MachineWakeTest, WithoutAWaitItGetsWhatIsFreeNow) {
  Evicted(40);
  SimClient* other = Connect("b");
  const quota::LeaseId blocking = Lease(other, 40);
  EXPECT_EQ(Outcome(idle, Restore(idle, seconds(0))), "POOL_EXHAUSTED");
  Release(other, blocking);
  Restore(idle, seconds(0));
  Work();
  EXPECT_FALSE(IsClosed(idle)) << "it is back, in time or not";
}

TEST_F(MachineWakeTest, ItWaitsForItsBytesAndIsRefusedWhenItsTimeIsOver) {
  const quota::LeaseId lease = Evicted(40);
  SimClient* other = Connect("b");
  const quota::LeaseId blocking = Lease(other, 40);
  const uint64_t id = Restore(idle, seconds(3));
  RunFor(milliseconds(2999));
  EXPECT_EQ(Outcome(idle, id), "nothing");
  RunFor(milliseconds(1));
  EXPECT_EQ(Outcome(idle, id), "POOL_EXHAUSTED");
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_TRUE(IsClosed(idle));
  // The contents stay, and it may ask again.
  const uint64_t again = Restore(idle, seconds(3));
  Release(other, blocking);
  Work();
  EXPECT_EQ(Outcome(idle, again), "restored");
  EXPECT_EQ(Read(idle, lease), written);
}

TEST_F(MachineWakeTest, SeveralWaitEachToItsOwnDeadline) {
  Evicted(40);
  SimClient* other = Connect("b");
  const quota::LeaseId blocking = Lease(other, 40);
  const uint64_t brief = Restore(idle, seconds(1));
  const uint64_t patient = Restore(idle, seconds(20));
  const uint64_t hurried = Restore(idle, seconds(0));
  EXPECT_EQ(Outcome(idle, hurried), "POOL_EXHAUSTED");
  RunFor(seconds(2));
  EXPECT_EQ(Outcome(idle, brief), "POOL_EXHAUSTED");
  EXPECT_EQ(Outcome(idle, patient), "nothing");
  Release(other, blocking);
  Work();
  EXPECT_EQ(Outcome(idle, patient), "restored");
}

TEST_F(MachineWakeTest, MemoryThatComesTooLateStays) {
  const quota::LeaseId lease = Evicted(8);
  const uint64_t id = Restore(idle, seconds(1));
  RunDevice();
  world.Advance(seconds(2));
  EXPECT_EQ(Outcome(idle, id), "POOL_EXHAUSTED");
  Work();
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_TRUE(Enter(idle));
}

TEST_F(MachineWakeTest, WhatIsLostWhileItWaitsJoinsIt) {
  const quota::LeaseId kept = Lease(idle, 10);
  const quota::LeaseId gone = Lease(idle, 10);
  Reclaim("a", 10);
  Work();
  ASSERT_NE(Where(kept), Where(gone));
  SimClient* other = Connect("b");
  const quota::LeaseId blocking = Lease(other, 50);
  const uint64_t id = Restore(idle, seconds(60));
  Reclaim("a");
  Work();
  ASSERT_EQ(Where(kept), "evicted");
  ASSERT_EQ(Where(gone), "evicted");
  Release(other, blocking);
  Work();
  EXPECT_EQ(Outcome(idle, id), "restored");
  EXPECT_EQ(Where(kept), "mapped");
  EXPECT_EQ(Where(gone), "mapped");
}

TEST_F(MachineWakeTest, WithinItsGuaranteeItHasActiveBorrowersPaused) {
  SetTenant("a", {.guarantee = 32});
  Evicted(32);
  SimClient* batch = Active("b");
  const quota::LeaseId borrowed = Lease(batch, 60);
  const uint64_t id = Restore(idle, seconds(10));
  EXPECT_EQ(Told(batch, v1::BrokerMessage::kPausing), 1u);
  Park(batch);
  RunFor(milliseconds(10));
  EXPECT_EQ(Where(borrowed), "evicted");
  EXPECT_EQ(Outcome(idle, id), "restored");
}

TEST_F(MachineWakeTest, AboveItsGuaranteeItWaitsAsABorrower) {
  Evicted(32);
  SimClient* batch = Active("b");
  Lease(batch, 60);
  const uint64_t id = Restore(idle, seconds(2));
  RunFor(seconds(2));
  EXPECT_EQ(Told(batch, v1::BrokerMessage::kPausing), 0u);
  EXPECT_EQ(Outcome(idle, id), "POOL_EXHAUSTED");
}

TEST_F(MachineWakeTest, ADrainingPoolLetsItIn) {
  Evicted(8);
  ASSERT_TRUE(Drain(true).ok());
  EXPECT_EQ(Outcome(idle, Ask(idle, 1)), "DRAINING");
  const uint64_t id = Restore(idle);
  Work();
  EXPECT_EQ(Outcome(idle, id), "restored");
}

TEST_F(MachineWakeTest, ALimitThatHasBecomeTooSmallRefusesIt) {
  const quota::LeaseId lease = Evicted(20);
  SetTenant("a", {.limit = 10});
  const uint64_t id = Restore(idle, seconds(60));
  EXPECT_EQ(Outcome(idle, id), "TENANT_LIMIT");
  EXPECT_EQ(Where(lease), "evicted") << "the contents stay";
  SetTenant("a", {.limit = 20});
  const uint64_t again = Restore(idle);
  Work();
  EXPECT_EQ(Outcome(idle, again), "restored");
  EXPECT_EQ(Read(idle, lease), written);
}

// --- When a step fails.

TEST_F(MachineWakeTest, AStepThatFailsIsAnAnswerAndTheContentsStay) {
  for (const bool map_fails : {true, false}) {
    const quota::LeaseId lease = Evicted(7);
    const uint64_t copied = world.copies_out;
    const uint64_t id = Restore(idle);
    RunDevice();
    if (map_fails) {
      RunCopies();
      RefuseMoves(idle);
    } else {
      RunCopies(/*fail=*/true);
      Follow(idle);
    }
    EXPECT_EQ(Outcome(idle, id), "DEVICE_ERROR") << map_fails;
    EXPECT_TRUE(AnswerTo(idle, id).error().detail().has_retry_after());
    Work();
    EXPECT_EQ(Where(lease), "evicted") << map_fails;
    EXPECT_EQ(world.copies_out, copied) << "only the host pool's are true";
    EXPECT_EQ(Events("restore_failed").size(), map_fails ? 1u : 2u);
    const uint64_t again = Restore(idle);
    Work();
    EXPECT_EQ(Outcome(idle, again), "restored") << map_fails;
    EXPECT_EQ(Read(idle, lease), written) << map_fails;
    Release(idle, lease);
  }
}

TEST_F(MachineWakeTest, SlabsThatCannotBeMadeAreAnAnswerAfterThreeAttempts) {
  const quota::LeaseId lease = Evicted(64);  // more than lies ready
  RunFor(seconds(10));
  const uint64_t id = Restore(idle, seconds(60));
  const int attempts = FailCreatesUntilAnswered(idle, id);
  EXPECT_EQ(Outcome(idle, id), "DEVICE_ERROR");
  EXPECT_LE(attempts, 4);
  EXPECT_TRUE(AnswerTo(idle, id).error().detail().has_retry_after());
  EXPECT_EQ(Where(lease), "evicted");
  world.device(kPool).FailNextCreate(absl::OkStatus());
  RunDevice();
  const uint64_t again = Restore(idle);
  Work();
  EXPECT_EQ(Outcome(idle, again), "restored");
  EXPECT_EQ(Read(idle, lease), written);
}

TEST_F(MachineWakeTest, AMapThatIsNotAnsweredKeepsTheGateClosed) {
  const quota::LeaseId lease = Evicted(8);
  stubborn.insert(idle);
  const uint64_t id = Restore(idle, seconds(60));
  RunFor(milliseconds(29'900));
  EXPECT_TRUE(Events("client_overdue").empty());
  RunFor(milliseconds(200));
  EXPECT_EQ(Events("client_overdue").size(), 1u);
  EXPECT_TRUE(IsClosed(idle));
  EXPECT_EQ(Where(lease), "restoring");
  EXPECT_TRUE(IsHard(lease)) << "the bytes are its own and count as held";
  Follow(idle);
  EXPECT_EQ(Outcome(idle, id), "restored");
  EXPECT_FALSE(IsHard(lease));
}

TEST_F(MachineWakeTest, AWordThatWasWrittenOverFailsItsOwnRestoreAlone) {
  SimClient* other = Parked("a");
  Lease(other, 4);
  const quota::LeaseId lease = Evicted(8);
  idle->cells->word.store(ipc::GateWord(ipc::GateState::kOpen, 1, 9).bits());
  EXPECT_EQ(Where(lease), "evicted") << "the broker goes by its own books";
  const uint64_t id = Restore(idle);
  const uint64_t of_other = Restore(other);
  Work();
  EXPECT_EQ(Outcome(idle, id), "BAD_STATE");
  EXPECT_EQ(Outcome(other, of_other), "restored");
}

TEST_F(MachineWakeTest, ASessionThatEndsAtAnyStepLeavesNothing) {
  for (int step = 0; step < 4; ++step) {
    const quota::LeaseId lease = Evicted(8);
    SimClient* other = Connect("b");
    const quota::LeaseId blocking = Lease(other, 60);
    Restore(idle, seconds(60));
    if (step > 0) Release(other, blocking);
    if (step > 1) RunDevice();
    if (step > 2) Follow(idle);
    End(idle);
    End(other);
    RunCopies();
    RunDevice();
    EXPECT_EQ(Where(lease), "gone") << step;
    EXPECT_EQ(Waiting(), 0u) << step;
    EXPECT_EQ(InHostPool("a").reserved_bytes, 0u) << step;
    EXPECT_EQ(Of("a").leased_bytes, 0u) << step;
    idle = Parked("a");
  }
}

TEST_F(MachineWakeTest, ALeaseReleasedWhileItIsAwayIsNotWaitedFor) {
  const quota::LeaseId lease = Evicted(40);
  SimClient* other = Connect("b");
  Lease(other, 40);
  const uint64_t id = Restore(idle, seconds(60));
  EXPECT_EQ(Outcome(idle, Release(idle, lease)), "released");
  EXPECT_EQ(Outcome(idle, id), "restored") << "nothing of it is away";
  EXPECT_EQ(Waiting(), 0u);
}

// `max(min_residency, 4 x its measured restore time)`.
TEST_F(MachineWakeTest, WhatHasJustComeBackStaysForFourTimesItsRestore) {
  const quota::LeaseId lease = Evicted(40);
  const uint64_t id = Restore(idle);
  RunDevice();
  world.Advance(seconds(1));
  Work();
  ASSERT_EQ(Outcome(idle, id), "restored");
  SimClient* borrower = Parked("b");
  const uint64_t asked = Ask(borrower, 40, {.wait = seconds(60)});
  RunFor(milliseconds(3900));
  EXPECT_EQ(Where(lease), "mapped");
  RunFor(milliseconds(200));
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(Outcome(borrower, asked), "granted");
}

class MachineTwoPoolsTest : public MachineWakeTest {
 protected:
  static MachineWorld Shape() {
    MachineWorld shape;
    shape.pools = 2;
    shape.host_granules = 128;
    shape.options.max_requests_per_session = 2;
    return shape;
  }
  MachineTwoPoolsTest() : MachineWakeTest(Shape()) {}
};

TEST_F(MachineTwoPoolsTest, AllDevicesComeBackAtOnceOrNone) {
  const quota::LeaseId one = Evicted(40, {.device = "sim-1"});
  SimClient* other = Connect("b");
  const quota::LeaseId blocking = Lease(other, 40, {.device = "sim-1"});
  const quota::LeaseId two = Lease(idle, 40, {.device = "sim-2"});
  Reclaim("a", ReclaimWish{.device = "sim-2"});
  Work();
  ASSERT_EQ(Where(two), "evicted");
  const uint64_t id = Restore(idle, seconds(60));
  RunFor(seconds(5));
  EXPECT_EQ(Where(two), "evicted") << "its bytes are there, the others' not";
  EXPECT_EQ(Outcome(idle, id), "nothing");
  Release(other, blocking);
  Work();
  EXPECT_EQ(Where(one), "mapped");
  EXPECT_EQ(Where(two), "mapped");
  EXPECT_EQ(Outcome(idle, id), "restored");
}

TEST_F(MachineTwoPoolsTest, WhatWaitsIsBounded) {
  Evicted(40, {.device = "sim-1"});
  Lease(Connect("b"), 40, {.device = "sim-1"});
  EXPECT_EQ(Outcome(idle, Restore(idle, seconds(60))), "nothing");
  EXPECT_EQ(Outcome(idle, Restore(idle, seconds(60))), "nothing");
  EXPECT_EQ(Outcome(idle, Restore(idle, seconds(60))), "TOO_MANY_REQUESTS");
}

// Each of a session's leases that has moved asks whether all have.
class MachineWakesManyTest : public MachineFixture {
 protected:
  static constexpr uint64_t kLeases = 200;
  static MachineWorld Wide() {
    return {.granules = kLeases, .host_granules = kLeases};
  }
  MachineWakesManyTest() : MachineFixture(Wide()) { world.CheckEvery(100); }
  // So much for all of its leases.
  static constexpr uint64_t kMost = 20 * kLeases;
};

TEST_F(MachineWakesManyTest, ThatIsSeenWithoutALookAtAllOfThem) {
  SetTenant("a");
  SetTenant("owner", {.guarantee = kLeases});
  SimClient* client = Parked("a");
  for (uint64_t i = 0; i < kLeases; ++i) Lease(client, 1);
  RunFor(seconds(1));
  SimClient* owner = Connect("owner");
  const uint64_t id = Ask(owner, kLeases, {.wait = seconds(60)});
  uint64_t before = *state().away_looks;
  Work();
  RunFor(seconds(1));
  ASSERT_EQ(Outcome(owner, id), "granted");
  EXPECT_LE(*state().away_looks - before, kMost) << "on their way out";
  End(owner);
  Work();
  before = *state().away_looks;
  const uint64_t restore = Restore(client, seconds(60));
  Work();
  RunFor(seconds(1));
  ASSERT_EQ(Outcome(client, restore), "restored");
  EXPECT_LE(*state().away_looks - before, kMost) << "on their way back";
}

}  // namespace
}  // namespace gmb::broker
