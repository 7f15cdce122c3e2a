// Leases that leave the device (docs/eviction.md): step by step, and what
// follows when a step fails.
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineEvictTest : public MachineFixture {
 protected:
  explicit MachineEvictTest(const MachineWorld& shape = {})
      : MachineFixture(shape) {}
  void SetUp() override {
    SetTenant("a");
    SetTenant("owner", {.guarantee = 32});
    idle = Parked("a");
    owner = Connect("owner");
  }
  // Within its guarantee; it lacks some bytes.
  uint64_t AskWithin(uint64_t granules) {
    return Ask(owner, granules, {.wait = seconds(60)});
  }
  void Unmapped(SimClient* client, quota::LeaseId lease, uint64_t move) {
    v1::ClientMessage message;
    message.mutable_unmapped()->set_lease_id(lease.value);
    message.mutable_unmapped()->set_move(move);
    Notify(client, message);
  }
  SimClient* idle = nullptr;
  SimClient* owner = nullptr;
};

TEST_F(MachineEvictTest, BytesServeOthersWhenTheyAreCopiedAndUnmapped) {
  for (const bool copied_first : {true, false}) {
    const quota::LeaseId lease = Lease(idle, 40);
    const uint64_t id = AskWithin(32);
    EXPECT_TRUE(IsClosed(idle)) << "the gate is closed first";
    EXPECT_EQ(Told(idle, v1::BrokerMessage::kEvict), copied_first ? 1u : 2u);
    EXPECT_EQ(Where(lease), "evicting");
    copied_first ? RunCopies() : Follow(idle);
    RunDevice();
    EXPECT_EQ(Outcome(owner, id), "waits") << "one of the two is not enough";
    EXPECT_EQ(Where(lease), "evicting");
    copied_first ? Follow(idle) : RunCopies();
    RunDevice();
    EXPECT_EQ(Where(lease), "evicted");
    EXPECT_EQ(Outcome(owner, id), "granted");
    EXPECT_EQ(Resident("a"), 0u);
    EXPECT_EQ(Of("a").leased_bytes, 40 * kGranule) << "against its limit";
    Release(idle, lease);
    Release(owner, {AnswerTo(owner, id).grant().lease_id()});
    const uint64_t restore = Restore(idle);
    RunDevice();
    EXPECT_EQ(Outcome(idle, restore), "restored");
  }
}

TEST_F(MachineEvictTest, TheCopierGetsAJobForEachSlab) {
  const quota::LeaseId lease = Lease(idle, 7);
  const size_t slabs = idle->leases.at(lease.value).slabs.size();
  ASSERT_GT(slabs, 1u);
  Reclaim("a");
  EXPECT_EQ(world.copies_out, slabs);
}

TEST_F(MachineEvictTest, NothingIsCopiedOfWhatMayBeLost) {
  const quota::LeaseId lease = Lease(idle, 40, {.contents = v1::DISCARD});
  const uint64_t id = AskWithin(32);
  Follow(idle);
  RunDevice();
  EXPECT_EQ(Outcome(owner, id), "granted");
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(world.copies_out, 0u);
  ASSERT_EQ(Events("evict_started").size(), 1u);
  EXPECT_EQ(Events("evict_started")[0].message(), "nothing to copy");
}

TEST_F(MachineEvictTest, NothingIsCopiedAgainUnlessAScopeWasInOrItIsSealed) {
  struct Row {
    const char* why;
    bool sealed;
    bool entered;
    bool copied;
  };
  for (const Row& row :
       {Row{"unused", false, false, false}, Row{"used", false, true, true},
        Row{"sealed and used", true, true, false}}) {
    SimClient* client = Parked("a");
    const quota::LeaseId lease = Lease(client, 4);
    if (row.sealed) {
      EXPECT_EQ(Outcome(client, Seal(client, lease)), "sealed");
    }
    Reclaim("a");
    Work();
    ASSERT_EQ(Where(lease), "evicted") << row.why;
    Restore(client);
    Work();
    ASSERT_EQ(Where(lease), "mapped") << row.why;
    if (row.entered) {
      EXPECT_TRUE(Enter(client));
      Park(client);
    }
    const uint64_t before = world.copies_out;
    Reclaim("a");
    Work();
    EXPECT_EQ(Where(lease), "evicted") << row.why;
    EXPECT_EQ(world.copies_out > before, row.copied) << row.why;
    End(client);
  }
}

TEST_F(MachineEvictTest, WhatCannotBeTakenIsHardAndTheOperatorIsToldWhy) {
  SimClient* off = Connect("a");
  const quota::LeaseId of_off = Lease(off, 2);
  const quota::LeaseId resident = Lease(idle, 3, {.contents = v1::RESIDENT});
  EXPECT_TRUE(IsHard(of_off));
  EXPECT_TRUE(IsHard(resident));
  const auto answer = Reclaim("a");
  RunFor(seconds(1));
  ASSERT_TRUE(answer->has_value());
  ASSERT_TRUE((*answer)->ok());
  EXPECT_EQ((**answer)->reclaimed_bytes(), 0u);
  ASSERT_EQ((**answer)->findings_size(), 2);
  EXPECT_NE((**answer)->findings(0).find("RESIDENT"), std::string::npos);
  EXPECT_NE((**answer)->findings(1).find("does not use the gate"),
            std::string::npos);
  EXPECT_EQ(Where(of_off), "mapped");
  EXPECT_EQ(Where(resident), "mapped");
}

TEST_F(MachineEvictTest, AnswersToOtherMovesAreNone) {
  const quota::LeaseId lease = Lease(idle, 40, {.contents = v1::DISCARD});
  const quota::LeaseId other = Lease(idle, 2, {.contents = v1::DISCARD});
  Unmapped(idle, lease, 0);  // asked for nothing yet
  Unmapped(idle, lease, 1);
  EXPECT_EQ(Where(lease), "mapped");
  AskWithin(32);
  ASSERT_EQ(Where(lease), "evicting");
  const uint64_t move = idle->moves.front().evict().move();
  Unmapped(idle, lease, move + 1);
  Unmapped(idle, lease, 0);
  Unmapped(idle, other, move);
  Unmapped(owner, lease, move);
  v1::ClientMessage mapped;
  mapped.mutable_mapped()->set_lease_id(lease.value);
  mapped.mutable_mapped()->set_move(move);
  Notify(idle, mapped);
  EXPECT_EQ(Where(lease), "evicting");
  Follow(idle);
  EXPECT_EQ(Where(lease), "evicted");
  Unmapped(idle, lease, move);
  EXPECT_EQ(Where(lease), "evicted");
}

TEST_F(MachineEvictTest, MovesAreNumberedUpwards) {
  std::vector<quota::LeaseId> leases;
  for (int i = 0; i < 3; ++i) leases.push_back(Lease(idle, 4));
  Reclaim("a");
  ASSERT_EQ(idle->moves.size(), 3u);
  uint64_t last = 0;
  for (const v1::BrokerMessage& move : idle->moves) {
    EXPECT_EQ(move.request_id(), 0u);
    EXPECT_GT(move.evict().move(), last);
    last = move.evict().move();
  }
  Work();
  Restore(idle);
  RunDevice();
  for (const v1::BrokerMessage& move : idle->moves) {
    EXPECT_GT(move.map().move(), last);
    last = move.map().move();
  }
}

// --- When a step fails.

TEST_F(MachineEvictTest, ACopyThatFailsLeavesTheContentsOnTheDevice) {
  const quota::LeaseId lease = Lease(idle, 8);
  Write(idle, lease, 100);
  const std::vector<uint64_t> written = Read(idle, lease);
  Reclaim("a");
  RunCopies(/*fail=*/true);
  EXPECT_EQ(Where(lease), "evicting") << "the client may be unmapping it";
  Follow(idle);
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_EQ(Events("evict_failed").size(), 1u);
  // It had unmapped it, so it maps it again when a scope wants in.
  EXPECT_TRUE(IsClosed(idle));
  const uint64_t restore = Restore(idle);
  ASSERT_EQ(idle->moves.size(), 1u);
  EXPECT_TRUE(idle->moves.front().has_map());
  EXPECT_EQ(world.copies_in, 0u) << "the contents are there";
  Follow(idle);
  EXPECT_EQ(Outcome(idle, restore), "restored");
  EXPECT_EQ(Read(idle, lease), written);
}

TEST_F(MachineEvictTest, AFailedLeaseIsLeftAloneForTenSecondsByEverybody) {
  const quota::LeaseId lease = Lease(idle, 40);
  Reclaim("a");
  RunCopies(/*fail=*/true);
  Follow(idle);
  ASSERT_EQ(Events("evict_failed").size(), 1u);
  const auto again = Reclaim("a");
  const uint64_t id = AskWithin(32);
  RunFor(milliseconds(9900));
  ASSERT_TRUE(again->has_value());
  ASSERT_EQ((**again)->findings_size(), 1);
  EXPECT_NE((**again)->findings(0).find("failed lately"), std::string::npos);
  EXPECT_EQ(Where(lease), "mapped");
  RunFor(milliseconds(200));
  EXPECT_EQ(Where(lease), "evicted") << "it is tried anew after that";
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachineEvictTest, AClientThatCannotUnmapKeepsItMapped) {
  const quota::LeaseId lease = Lease(idle, 40);
  Reclaim("a");
  RunCopies();
  RefuseMoves(idle);
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_FALSE(IsHard(lease)) << "once may happen";
  EXPECT_FALSE(IsClosed(idle)) << "and it may go on";
  RunFor(seconds(10));
  Reclaim("a");
  RunCopies();
  RefuseMoves(idle);
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_TRUE(IsHard(lease)) << "twice in a row counts as no answer";
}

// As one that does not answer.
TEST_F(MachineEvictTest, WhoRefusesTwiceIsKilledOnceSomebodyNeedsItsMemory) {
  SetTenant("a", {.may_terminate = true});
  const quota::LeaseId lease = Lease(idle, 40);
  for (int round = 0; round < 2; ++round) {
    const uint64_t given_up = AskWithin(32);
    RunCopies();
    Cancel(owner, given_up);
    RefuseMoves(idle);
    EXPECT_EQ(Where(lease), "mapped");
    RunFor(seconds(10));
  }
  RunFor(seconds(60));
  EXPECT_EQ(killed, 0) << "nobody needs it";
  EXPECT_FALSE(IsHard(lease)) << "it can be had";
  const uint64_t small = AskWithin(8);
  EXPECT_EQ(Outcome(owner, small), "granted");
  EXPECT_EQ(killed, 0) << "there was enough without it";
  const uint64_t id = AskWithin(24);
  RunFor(seconds(1));
  EXPECT_EQ(killed, 1);
  EXPECT_EQ(Events("evict_started").size(), 2u) << "not asked again";
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachineEvictTest, WhoRefusesInTheMiddleOfADemandIsKilledForIt) {
  SetTenant("a", {.may_terminate = true});
  stubborn.insert(idle);
  Lease(idle, 40);
  const uint64_t id = AskWithin(32);
  RunCopies();
  RefuseMoves(idle);
  RunFor(milliseconds(9900));
  EXPECT_EQ(killed, 0) << "once may happen";
  RunFor(milliseconds(200));
  RunCopies();
  RefuseMoves(idle);
  RunFor(milliseconds(100));
  EXPECT_EQ(killed, 1) << "it has had its time since the first refusal";
  RunFor(seconds(1));
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachineEvictTest, OneThatUnmapsInBetweenIsTrustedAgain) {
  const quota::LeaseId lease = Lease(idle, 4);
  for (int round = 0; round < 3; ++round) {
    Reclaim("a");
    RunCopies();
    RefuseMoves(idle);
    EXPECT_FALSE(IsHard(lease)) << round;
    RunFor(seconds(10));
    Reclaim("a");
    Work();
    ASSERT_EQ(Where(lease), "evicted");
    Restore(idle);
    Work();
    ASSERT_EQ(Where(lease), "mapped");
  }
}

// Contents that a client names in its error go to operators' terminals.
TEST_F(MachineEvictTest, AClientsWordsAreMadePrintable) {
  Lease(idle, 4);
  Reclaim("a");
  v1::ClientMessage message;
  message.mutable_unmapped()->set_lease_id(
      idle->moves.front().evict().lease_id());
  message.mutable_unmapped()->set_move(idle->moves.front().evict().move());
  message.mutable_unmapped()->mutable_error()->set_code(13);
  message.mutable_unmapped()->mutable_error()->set_message("\x1b[2J\nowned");
  Notify(idle, message);
  RunCopies();
  ASSERT_EQ(Events("evict_failed").size(), 1u);
  const std::string said = Events("evict_failed")[0].message();
  for (const char c : said)
    EXPECT_TRUE(absl::ascii_isprint(static_cast<unsigned char>(c)));
}

// Messages that it has sent meanwhile are read after the first turn.
TEST_F(MachineEvictTest, WhoAnswersABrokerThatIsStoppedIsNotKilledForThat) {
  SetTenant("a", {.may_terminate = true});
  stubborn.insert(idle);
  const quota::LeaseId lease = Lease(idle, 40);
  const uint64_t id = AskWithin(32);
  RunCopies();
  EXPECT_EQ(Where(lease), "evicting");
  world.HoldUp();
  world.Advance(seconds(30));
  EXPECT_EQ(killed, 0);
  EXPECT_TRUE(Events("client_overdue").empty());
  RunFor(milliseconds(1900));
  Follow(idle);
  RunFor(milliseconds(10));
  EXPECT_EQ(Outcome(owner, id), "granted");
  EXPECT_EQ(killed, 0);
}

TEST_F(MachineEvictTest, WhoDoesNotAnswerInTimeIsOverdueAndItsBytesAreHard) {
  stubborn.insert(idle);
  const quota::LeaseId lease = Lease(idle, 30);
  const uint64_t id = AskWithin(32);
  EXPECT_EQ(Outcome(owner, id), "granted") << "32 of 34 are free";
  Reclaim("a");
  RunFor(milliseconds(1900));
  EXPECT_FALSE(IsHard(lease));
  RunFor(milliseconds(200));
  EXPECT_TRUE(IsHard(lease));
  EXPECT_TRUE(IsClosed(idle)) << "its own scopes stand at the closed gate";
  RunFor(seconds(20));
  EXPECT_EQ(Events("client_overdue").size(), 1u) << "told once";
  EXPECT_EQ(killed, 0);
  EXPECT_EQ(Where(lease), "evicting") << "no clock ends an eviction";
  Follow(idle);
  EXPECT_EQ(Where(lease), "evicted") << "a late answer ends it as usual";
  EXPECT_EQ(Told(idle, v1::BrokerMessage::kEvict), 1u);
}

TEST_F(MachineEvictTest, OthersAreAskedForWhatIsOverdue) {
  stubborn.insert(idle);
  Lease(idle, 24);
  RunFor(seconds(1));  // it is the longest idle
  SimClient* honest = Parked("a");
  const quota::LeaseId lease = Lease(honest, 30);
  const uint64_t id = AskWithin(32);
  RunFor(milliseconds(1900));
  EXPECT_EQ(Outcome(owner, id), "waits");
  EXPECT_EQ(Where(lease), "mapped");
  RunFor(milliseconds(300));
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachineEvictTest, TimeForUnmappingGrowsWithTheCopying) {
  Lease(idle, 40);
  AskWithin(32);
  ASSERT_EQ(idle->moves.size(), 1u);
  const quota::Nanoseconds given = Index().answers_due() - world.now();
  EXPECT_GT(given, seconds(2));
  EXPECT_LT(given, seconds(3));
}

// --- Those who leave meanwhile.

TEST_F(MachineEvictTest, ALeaseThatIsReleasedWhileItLeavesIsGone) {
  const quota::LeaseId lease = Lease(idle, 40);
  const uint64_t id = AskWithin(32);
  ASSERT_EQ(Where(lease), "evicting");
  EXPECT_EQ(Outcome(idle, Release(idle, lease)), "released");
  RunDevice();
  EXPECT_EQ(Outcome(owner, id), "waits") << "the copier reads its slabs";
  RunCopies();
  RunDevice();
  EXPECT_EQ(Where(lease), "gone");
  EXPECT_EQ(Outcome(owner, id), "granted");
  EXPECT_EQ(InHostPool("a").reserved_bytes, 0u);
}

TEST_F(MachineEvictTest, ASessionThatEndsAtAnyStepLeavesNothing) {
  for (int step = 0; step < 5; ++step) {
    SimClient* client = Parked("a");
    const quota::LeaseId lease = Lease(client, 8);
    Reclaim("a");
    switch (step) {
      case 0:  // nothing is done yet
        break;
      case 1:  // a part is copied
        world.StepCopy(/*out=*/true, /*fail=*/false);
        break;
      case 2:  // all is copied
        RunCopies();
        break;
      case 3:  // it is unmapped
        Follow(client);
        break;
      default:  // it is away
        Work();
        ASSERT_EQ(Where(lease), "evicted");
    }
    End(client);
    RunCopies();
    RunDevice();
    EXPECT_EQ(Where(lease), "gone") << step;
    EXPECT_EQ(InHostPool("a").reserved_bytes, 0u) << step;
    EXPECT_EQ(Resident("a"), 0u) << step;
    EXPECT_EQ(Of("a").leased_bytes, 0u) << step;
  }
}

TEST_F(MachineEvictTest, AnEvictedLeaseMayBeReleased) {
  const quota::LeaseId lease = Lease(idle, 8);
  Reclaim("a");
  Work();
  EXPECT_EQ(Outcome(idle, Release(idle, lease)), "released");
  EXPECT_EQ(Where(lease), "gone");
  EXPECT_EQ(Of("a").leased_bytes, 0u);
  EXPECT_EQ(InHostPool("a").reserved_bytes, 0u);
}

// --- Scopes.

TEST_F(MachineEvictTest, WhoIsAtWorkIsTakenSoonAfterItParks) {
  SimClient* active = Active("a");
  const quota::LeaseId lease = Lease(active, 40);
  SetTenant("b");
  SimClient* borrower = Parked("b");
  const uint64_t id = Ask(borrower, 32, {.wait = seconds(60)});
  RunFor(seconds(3));
  EXPECT_EQ(Where(lease), "mapped") << "a borrower pauses nobody";
  EXPECT_FALSE(GateOf(active).paused());
  Park(active);
  RunFor(milliseconds(20));
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(Outcome(borrower, id), "granted");
}

TEST_F(MachineEvictTest, AScopeThatWantsInMeanwhileWaitsForTheEnd) {
  const quota::LeaseId lease = Lease(idle, 8);
  Reclaim("a");
  EXPECT_FALSE(Enter(idle));
  const uint64_t restore = Restore(idle);
  Follow(idle);
  EXPECT_EQ(Where(lease), "evicting");
  EXPECT_EQ(Outcome(idle, restore), "nothing");
  Work();
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_EQ(Outcome(idle, restore), "restored");
  EXPECT_TRUE(Enter(idle));
}

class MachineNoHostPoolTest : public MachineEvictTest {
 protected:
  MachineNoHostPoolTest() : MachineEvictTest({.host_granules = 0}) {}
};

TEST_F(MachineNoHostPoolTest, WhatIsToBeKeptStaysAndWhatMayBeLostGoes) {
  const quota::LeaseId kept = Lease(idle, 10);
  const quota::LeaseId lost = Lease(idle, 10, {.contents = v1::DISCARD});
  EXPECT_TRUE(IsHard(kept));
  EXPECT_FALSE(IsHard(lost));
  Reclaim("a");
  RunFor(seconds(1));
  EXPECT_EQ(Where(kept), "mapped");
  EXPECT_EQ(Where(lost), "evicted");
}

class MachineIpcEvictTest : public MachineEvictTest {
 protected:
  MachineIpcEvictTest()
      : MachineEvictTest({.kind = device::DeviceKind::kIpc}) {}
};

TEST_F(MachineIpcEvictTest, AnIpcDeviceEvictsNothing) {
  const quota::LeaseId kept = Lease(idle, 10);
  const quota::LeaseId lost = Lease(idle, 10, {.contents = v1::DISCARD});
  EXPECT_TRUE(IsHard(kept));
  EXPECT_TRUE(IsHard(lost));
  Reclaim("a");
  RunFor(seconds(1));
  EXPECT_EQ(Where(kept), "mapped");
  EXPECT_EQ(Where(lost), "mapped");
  EXPECT_EQ(idle->leases.at(kept.value).slabs.size(), 1u) << "one slab";
}

}  // namespace
}  // namespace gmb::broker
