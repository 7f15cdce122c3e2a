// Moves that were under way when the broker died (docs/handover.md): the next
// one begins them anew, and the contents are where they were true.
#include <algorithm>
#include <chrono>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;

class MachineTakeoverTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    idle = Parked("a");
  }
  // Of `idle`, and away.
  quota::LeaseId Evicted(uint64_t granules = 8, const Wish& wish = {}) {
    const quota::LeaseId lease = Lease(idle, granules, wish);
    Write(idle, lease, 700);
    written = Read(idle, lease);
    Reclaim("a");
    Work();
    EXPECT_EQ(Where(lease), "evicted");
    return lease;
  }
  // Numbers of moves rise with each broker.
  [[nodiscard]] static bool IsOfTheSecond(const v1::BrokerMessage& move) {
    const uint64_t number =
        move.has_evict() ? move.evict().move() : move.map().move();
    return number >= uint64_t{1} << 32;
  }
  [[nodiscard]] static bool IsOwed(const SimClient* client,
                                   quota::LeaseId lease) {
    return std::any_of(client->moves.begin(), client->moves.end(),
                       [&](const v1::BrokerMessage& move) {
                         return IsOfTheSecond(move) && move.has_evict() &&
                                move.evict().lease_id() == lease.value;
                       });
  }
  void ExpectBack(uint64_t restore, quota::LeaseId lease) {
    Work();
    EXPECT_EQ(Outcome(idle, restore), "restored");
    EXPECT_EQ(Where(lease), "mapped");
    EXPECT_FALSE(IsClosed(idle));
    EXPECT_EQ(Read(idle, lease), written);
  }
  // Shared, and being filled when the broker dies; its user has written over its
  // own gate, so that the next broker takes it to be at work.
  quota::LeaseId HalfFilledBehindAnOpenGate() {
    const quota::LeaseId lease = Evicted(8, {.share_as = "w"});
    Restore(idle, seconds(60));
    RunDevice();
    EXPECT_EQ(Where(lease), "restoring");
    idle->breaks_rules = true;
    idle->cells->word.store(ipc::GateWord(ipc::GateState::kOpen, 1, 9).bits());
    world.Die();
    EXPECT_EQ(Where(lease), "mapped");
    return lease;
  }
  SimClient* idle = nullptr;
  std::vector<uint64_t> written;
};

TEST_F(MachineTakeoverTest, WhatWasBeingFilledIsTrueInTheHostPoolAlone) {
  const quota::LeaseId lease = Evicted();
  const uint64_t copied = world.copies_out;
  const uint64_t restore = Restore(idle, seconds(60));
  RunDevice();
  ASSERT_EQ(Where(lease), "restoring");
  world.Die();
  EXPECT_EQ(Where(lease), "evicting");
  EXPECT_EQ(world.copies_out, copied) << "half-filled slabs are not copied";
  EXPECT_TRUE(IsOwed(idle, lease)) << "it may have mapped them by now";
  ExpectBack(restore, lease);
}

TEST_F(MachineTakeoverTest, SoIsWhatItsClientHadMappedAlready) {
  const quota::LeaseId lease = Evicted();
  const uint64_t restore = Restore(idle, seconds(60));
  RunDevice();
  Follow(idle);
  world.Die();
  EXPECT_TRUE(IsOwed(idle, lease));
  ExpectBack(restore, lease);
  RunFor(seconds(10));
  EXPECT_EQ(Of("a").unreturned_bytes, 0u) << "nothing of the first is kept";
}

TEST_F(MachineTakeoverTest, WithoutSlabsItIsAwayAsBefore) {
  const quota::LeaseId lease = Evicted(64);
  RunFor(seconds(10));
  const uint64_t restore = Restore(idle, seconds(60));
  ASSERT_EQ(Where(lease), "restoring");
  ASSERT_TRUE(world.state().LeaseAt(lease).held->preparing);
  const size_t evicts = Told(idle, v1::BrokerMessage::kEvict);
  world.Die();
  EXPECT_EQ(Told(idle, v1::BrokerMessage::kEvict), evicts);
  ExpectBack(restore, lease);
}

// Copied out and unmapped, all but recorded.
TEST_F(MachineTakeoverTest, WhatWasLeavingLeavesFromTheDevice) {
  const quota::LeaseId lease = Lease(idle, 8);
  Write(idle, lease, 700);
  written = Read(idle, lease);
  Reclaim("a");
  RunCopies();
  ASSERT_EQ(Where(lease), "evicting");
  world.SetFate([this] {
    world.SetFate(nullptr);
    return SimWorld::Fate::kDiesBeforeItIsRecorded;
  });
  Follow(idle);
  EXPECT_EQ(Where(lease), "evicting");
  Work();
  EXPECT_EQ(Where(lease), "evicted");
  ExpectBack(Restore(idle), lease);
}

// A gate that reads open is none that anything may be taken behind.
TEST_F(MachineTakeoverTest, WhatWasLeavingStaysIfItsGateIsNotClosed) {
  const quota::LeaseId lease = Lease(idle, 8);
  Reclaim("a");
  ASSERT_EQ(Where(lease), "evicting");
  idle->breaks_rules = true;
  idle->cells->word.store(ipc::GateWord(ipc::GateState::kOpen, 1, 9).bits());
  world.Die();
  EXPECT_EQ(Where(lease), "mapped");
}

TEST_F(MachineTakeoverTest, NobodyElseReadsWhatWasBeingFilledBehindAnOpenGate) {
  const quota::LeaseId lease = HalfFilledBehindAnOpenGate();
  SimClient* reader = Parked("a");
  const uint64_t id = Attach(reader, "w", seconds(10));
  EXPECT_EQ(Outcome(reader, id), "waits");
  EXPECT_EQ(Where(lease), "restoring") << "where it lies";
  RunCopies();
  EXPECT_EQ(Outcome(reader, id), "attached");
  EXPECT_EQ(Read(reader, lease), written);
}

TEST_F(MachineTakeoverTest, ItStaysWithItsUsersWhenItCannotBeFilled) {
  const quota::LeaseId lease = HalfFilledBehindAnOpenGate();
  SimClient* reader = Parked("a");
  const uint64_t id = Attach(reader, "w", seconds(10));
  const size_t evicts = Told(idle, v1::BrokerMessage::kEvict);
  Follow(idle);  // to its Map
  RunCopies(/*fail=*/true);
  EXPECT_EQ(Told(idle, v1::BrokerMessage::kEvict), evicts)
      << "its gate says that it is at work";
  EXPECT_EQ(Outcome(reader, id), "DEVICE_ERROR");
  const uint64_t again = Attach(reader, "w", seconds(10));
  Work();
  EXPECT_EQ(Outcome(reader, again), "attached");
  EXPECT_EQ(Read(reader, lease), written);
}

// Its gate was opened in the turn that was not recorded.
TEST_F(MachineTakeoverTest, WhatItsSessionWritesMeanwhileIsKept) {
  const quota::LeaseId lease = Evicted();
  Restore(idle, seconds(60));
  RunDevice();
  RunCopies();
  ASSERT_EQ(Where(lease), "restoring");
  world.SetFate([this] {
    world.SetFate(nullptr);
    EXPECT_TRUE(Enter(idle));
    return SimWorld::Fate::kDiesBeforeItIsRecorded;
  });
  Follow(idle);
  ASSERT_EQ(Where(lease), "mapped");
  Write(idle, lease, 900);
  written = Read(idle, lease);
  Park(idle);
  Reclaim("a");
  Work();
  ASSERT_EQ(Where(lease), "evicted");
  ExpectBack(Restore(idle), lease);
}

// A user without a gate that can be closed has nobody's contents taken from it.
TEST_F(MachineTakeoverTest, ItsRoomStaysWhenAUserTurnsItsGateOff) {
  const quota::LeaseId lease = HalfFilledBehindAnOpenGate();
  SetGate(idle, false);
  SimClient* reader = Parked("a");
  const uint64_t id = Attach(reader, "w", seconds(10));
  Work();
  EXPECT_EQ(Outcome(reader, id), "attached");
  EXPECT_EQ(Read(reader, lease), written);
  EXPECT_FALSE(state().host_books->HasRoom(lease)) << "no longer needed";
}

// It stays because of one user, and the other may be about to unmap it.
TEST_F(MachineTakeoverTest, WhoWasAskedToUnmapWhatStaysMapsItAgain) {
  const quota::LeaseId lease = Lease(idle, 8, {.share_as = "w"});
  SimClient* reader = Parked("a");
  ASSERT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  Reclaim("a");
  ASSERT_EQ(Where(lease), "evicting");
  ASSERT_EQ(reader->moves.size(), 1u);
  idle->breaks_rules = true;
  idle->cells->word.store(ipc::GateWord(ipc::GateState::kOpen, 1, 9).bits());
  world.Die();
  ASSERT_EQ(Where(lease), "mapped");
  ASSERT_EQ(reader->moves.size(), 2u);
  EXPECT_TRUE(reader->moves.front().has_evict());
  EXPECT_TRUE(reader->moves.back().has_map());
  const uint64_t restore = Restore(reader, seconds(60));
  EXPECT_EQ(Outcome(reader, restore), "nothing") << "it is still to map it";
  EXPECT_TRUE(IsClosed(reader));
  Work();
  EXPECT_EQ(Outcome(reader, restore), "restored");
  EXPECT_FALSE(IsClosed(reader));
}

// A reader that comes back later than the others maps what lies there filled.
TEST_F(MachineTakeoverTest, AMapThatWasAskedForIsAskedForAgain) {
  const quota::LeaseId lease = Lease(idle, 8, {.share_as = "w"});
  SimClient* reader = Parked("a");
  ASSERT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  Reclaim("a");
  Work();
  ASSERT_EQ(Where(lease), "evicted");
  Restore(idle);
  Work();
  ASSERT_EQ(Where(lease), "mapped");
  ASSERT_TRUE(IsClosed(reader));
  const uint64_t restore = Restore(reader, seconds(60));
  ASSERT_EQ(reader->moves.size(), 1u);
  const size_t evicts = Told(reader, v1::BrokerMessage::kEvict);
  world.Die();
  EXPECT_EQ(Where(lease), "mapped");
  ASSERT_EQ(reader->moves.size(), 2u);
  EXPECT_TRUE(reader->moves.back().has_map());
  EXPECT_TRUE(IsOfTheSecond(reader->moves.back()));
  EXPECT_EQ(Told(reader, v1::BrokerMessage::kEvict), evicts);
  reader->moves.pop_front();
  Work();
  EXPECT_EQ(Outcome(reader, restore), "restored");
  EXPECT_EQ(Told(idle, v1::BrokerMessage::kMap), 1u)
      << "who has it is left alone";
}

TEST_F(MachineTakeoverTest, OneWhoDoesNotMapItAfterThatIsOverdueInTime) {
  const quota::LeaseId lease = Lease(idle, 8, {.share_as = "w"});
  SimClient* reader = Parked("a");
  ASSERT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  Reclaim("a");
  Work();
  Restore(idle);
  Work();
  Restore(reader, seconds(60));
  stubborn.insert(reader);
  world.Die();
  RunFor(seconds(29));
  EXPECT_TRUE(Events("client_overdue").empty());
  RunFor(seconds(2));
  EXPECT_EQ(Events("client_overdue").size(), 1u);
  EXPECT_TRUE(IsHard(lease));
}

// Both are away, or neither: they are bound.
TEST_F(MachineTakeoverTest, AGroupIsOneAfterwardsToo) {
  SimClient* one = Parked("a", "g");
  SimClient* two = Parked("a", "g");
  const quota::LeaseId first = Lease(one, 4);
  const quota::LeaseId second = Lease(two, 4);
  ASSERT_TRUE(Enter(two));
  world.Die();
  EXPECT_EQ(*SessionOf(one).group, "g");
  Reclaim("a");
  Work();
  EXPECT_EQ(Where(first), "mapped") << "the other is at work";
  Park(two);
  Reclaim("a");
  Work();
  EXPECT_EQ(Where(first), "evicted");
  EXPECT_EQ(Where(second), "evicted");
}

// The slabs that it was sent with its Grant may not have come.
TEST_F(MachineTakeoverTest, WhoHasNotSaidThatItMappedIsSentTheSlabsAgain) {
  const quota::LeaseId told = Lease(idle, 4);
  v1::ClientMessage mapped;
  mapped.mutable_mapped()->set_lease_id(told.value);
  Notify(idle, mapped);
  world.Die();
  const size_t frames = idle->frames.size();
  const quota::LeaseId untold = Lease(idle, 7);
  const size_t slabs = idle->leases.at(untold.value).slabs.size();
  ASSERT_GT(idle->frames.size(), frames);
  const size_t before = idle->frames.size();
  world.Die();
  size_t again = 0;
  for (size_t i = before; i < idle->frames.size(); ++i)
    again += static_cast<size_t>(idle->frames[i].slab_bytes_size());
  EXPECT_EQ(again, slabs) << "of the one lease";
}

}  // namespace
}  // namespace gmb::broker
