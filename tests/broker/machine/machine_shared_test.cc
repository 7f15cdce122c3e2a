// Shared leases (docs/shared.md): names, who uses one, and how it moves.
#include <chrono>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineSharedTest : public MachineFixture {
 protected:
  explicit MachineSharedTest(const MachineWorld& shape = {})
      : MachineFixture(shape) {}
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    writer = Parked("a");
    reader = Parked("a");
  }
  std::string TryShare(SimClient* client, const Wish& wish) {
    const uint64_t id = Ask(client, 4, wish);
    RunDevice();
    return Outcome(client, id);
  }
  // Of the writer, sealed, and attached to by the reader.
  quota::LeaseId Shared(uint64_t granules = 8) {
    const quota::LeaseId lease = Lease(writer, granules, {.share_as = "w"});
    EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
    return lease;
  }
  SimClient* writer = nullptr;
  SimClient* reader = nullptr;
};

// --- Names.

TEST_F(MachineSharedTest, ANameIsShortPrintableAndForWhatIsKept) {
  struct Row {
    const char* why;
    Wish wish;
    std::string answer;
  };
  for (const Row& row : std::vector<Row>{
           {"the longest", {.share_as = std::string(128, 'n')}, "granted"},
           {"too long", {.share_as = std::string(129, 'n')}, "BAD_REQUEST"},
           {"a control character", {.share_as = "a\nb"}, "BAD_REQUEST"},
           {"DISCARD",
            {.contents = v1::DISCARD, .share_as = "d"},
            "BAD_REQUEST"},
           {"RESIDENT",
            {.contents = v1::RESIDENT, .share_as = "r"},
            "BAD_REQUEST"},
           {"kept without a name", {.keep = true}, "BAD_REQUEST"},
           {"unspecified contents",
            {.contents = v1::CONTENTS_UNSPECIFIED, .share_as = "u"},
            "granted"},
       }) {
    EXPECT_EQ(TryShare(writer, row.wish), row.answer) << row.why;
  }
}

TEST_F(MachineSharedTest, ANameIsTakenFromTheAcquireOnAndIsTheTenantsOwn) {
  Lease(Connect("b"), 60);
  const uint64_t waits =
      Ask(writer, 40, {.wait = seconds(60), .share_as = "w"});
  EXPECT_EQ(Outcome(writer, waits), "waits");
  EXPECT_EQ(TryShare(reader, {.share_as = "w"}), "NAME_TAKEN");
  EXPECT_EQ(TryShare(Parked("b"), {.share_as = "w"}), "granted")
      << "another tenant's names are its own";
  Cancel(writer, waits);
  EXPECT_EQ(TryShare(reader, {.share_as = "x"}), "POOL_EXHAUSTED");
  EXPECT_EQ(TryShare(reader, {.share_as = "x"}), "POOL_EXHAUSTED")
      << "a refused one leaves its name";
}

TEST_F(MachineSharedTest, ANameStaysWithARequestThatBecomesSoft) {
  SetTenant("owner", {.guarantee = 20});
  Lease(Connect("b"), 10);
  SimClient* late = Connect("a");
  const uint64_t id = Ask(late, 40, {.wait = seconds(60), .share_as = "w"});
  EXPECT_EQ(Outcome(late, id), "waits");
  const uint64_t attach = Attach(reader, "w", seconds(60));
  EXPECT_EQ(Outcome(reader, attach), "waits");
  Park(late);
  EXPECT_EQ(Outcome(late, SetGate(late, true)), "gate set");
  RunDevice();
  EXPECT_EQ(Outcome(late, id), "granted");
  Seal(late, {AnswerTo(late, id).grant().lease_id()});
  EXPECT_EQ(Outcome(reader, attach), "attached");
}

TEST_F(MachineSharedTest, ARequestThatBecameSoftFreesItsName) {
  Lease(Connect("b"), 40);
  SimClient* late = Connect("a");
  const uint64_t id = Ask(late, 40, {.wait = seconds(60), .share_as = "w"});
  Park(late);
  EXPECT_EQ(Outcome(late, SetGate(late, true)), "gate set");
  EXPECT_EQ(Outcome(late, id), "waits");
  Cancel(late, id);
  EXPECT_EQ(TryShare(reader, {.share_as = "w"}), "granted");
}

TEST_F(MachineSharedTest, AnotherTenantLearnsNothingOfIt) {
  Shared();
  SimClient* stranger = Parked("b");
  EXPECT_EQ(Outcome(stranger, Attach(stranger, "w")), "NO_SUCH_LEASE");
  EXPECT_EQ(Outcome(stranger, Drop(stranger, "w")), "NO_SUCH_LEASE");
}

TEST_F(MachineSharedTest, AWriterThatLeavesBeforeTheSealFreesTheName) {
  for (const bool ends : {false, true}) {
    SimClient* first = Parked("a");
    EXPECT_EQ(TryShare(first, {.share_as = "w"}), "granted");
    const quota::LeaseId lease{first->leases.begin()->first};
    const uint64_t id = Attach(reader, "w", seconds(60));
    EXPECT_EQ(Outcome(reader, id), "waits");
    ends ? End(first) : (void)Release(first, lease);
    EXPECT_EQ(Outcome(reader, id), "NO_SUCH_LEASE") << "it may fill it itself";
    EXPECT_EQ(TryShare(reader, {.share_as = "w"}), "granted");
    Release(reader, {reader->leases.begin()->first});
  }
}

// --- Attaching.

TEST_F(MachineSharedTest, AttachesWaitForTheSealAndGetTheVeryMemory) {
  EXPECT_EQ(TryShare(writer, {.share_as = "w"}), "granted");
  const quota::LeaseId lease{writer->leases.begin()->first};
  const uint64_t id = Attach(reader, "w", seconds(60));
  SimClient* third = Parked("a");
  const uint64_t of_third = Attach(third, "w", seconds(60));
  EXPECT_EQ(Outcome(reader, id), "waits");
  EXPECT_EQ(Outcome(third, of_third), "waits");
  Seal(writer, lease);
  EXPECT_EQ(Outcome(reader, id), "attached");
  EXPECT_EQ(Outcome(third, of_third), "attached");
  const v1::Grant grant = AnswerTo(reader, id).grant();
  EXPECT_EQ(grant.lease_id(), lease.value);
  EXPECT_EQ(grant.bytes(), 4 * kGranule);
  EXPECT_EQ(reader->frames.back().request_id(), id);
  const auto ids = [&](const SimClient* client) {
    std::vector<SlabId> slabs;
    for (const SimSlab& slab : client->leases.at(lease.value).slabs)
      slabs.push_back(slab.id);
    return slabs;
  };
  EXPECT_EQ(ids(reader), ids(writer));
  EXPECT_EQ(Of("a").leased_bytes, 4 * kGranule) << "it is charged once";
}

TEST_F(MachineSharedTest, WhatIsRefusedToAnAttach) {
  EXPECT_EQ(Outcome(reader, Attach(reader, "no", seconds(60))),
            "NO_SUCH_LEASE");
  EXPECT_EQ(TryShare(writer, {.share_as = "w"}), "granted");
  EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "BAD_STATE")
      << "it is not sealed";
  const uint64_t id = Attach(reader, "w", seconds(3));
  RunFor(milliseconds(2900));
  EXPECT_EQ(Outcome(reader, id), "waits");
  RunFor(milliseconds(200));
  EXPECT_EQ(Outcome(reader, id), "BAD_STATE");
  EXPECT_TRUE(AnswerTo(reader, id).error().detail().has_retry_after());
  Seal(writer, {writer->leases.begin()->first});
  EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "BAD_STATE")
      << "a session attaches once";
  EXPECT_EQ(Outcome(writer, Attach(writer, "w")), "BAD_STATE");
}

TEST_F(MachineSharedTest, AWaitingAttachCanBeWithdrawnAndRepeated) {
  EXPECT_EQ(TryShare(writer, {.share_as = "w"}), "granted");
  const uint64_t id = Attach(reader, "w", seconds(60));
  v1::ClientMessage again;
  again.set_request_id(id);
  again.mutable_attach()->set_name("w");
  world.Send(reader, again);
  EXPECT_EQ(Outcome(reader, id), "waits") << "it is the same request";
  Cancel(reader, id);
  EXPECT_EQ(Outcome(reader, id), "CANCELLED_BY_CLIENT");
  Seal(writer, {writer->leases.begin()->first});
  EXPECT_EQ(Told(reader, v1::BrokerMessage::kGrant), 0u);
}

// --- Sealing.

TEST_F(MachineSharedTest, ItsWriterAloneSealsItAndForEver) {
  const quota::LeaseId lease = Shared();
  EXPECT_EQ(Outcome(writer, Seal(writer, lease)), "sealed") << "said again";
  EXPECT_EQ(Outcome(reader, Seal(reader, lease)), "BAD_STATE");
  const quota::LeaseId own = Lease(writer, 2);
  EXPECT_EQ(Outcome(reader, Seal(reader, own)), "NO_SUCH_LEASE");
  EXPECT_EQ(Outcome(writer, Seal(writer, own)), "sealed") << "also without";
  const quota::LeaseId lost = Lease(writer, 2, {.contents = v1::DISCARD});
  EXPECT_EQ(Outcome(writer, Seal(writer, lost)), "BAD_STATE");
}

// --- How long it lives.

TEST_F(MachineSharedTest, ItLivesAsLongAsOneIsAttached) {
  const quota::LeaseId lease = Shared();
  End(writer);
  EXPECT_EQ(Where(lease), "mapped") << "it never goes away under a reader";
  SimClient* late = Parked("a");
  EXPECT_EQ(Outcome(late, Attach(late, "w")), "attached");
  EXPECT_EQ(Outcome(reader, Release(reader, lease)), "released");
  EXPECT_EQ(Where(lease), "mapped");
  End(late);
  EXPECT_EQ(Where(lease), "gone");
  EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "NO_SUCH_LEASE");
  EXPECT_EQ(Of("a").leased_bytes, 0u);
  EXPECT_EQ(InHostPool("a").reserved_bytes, 0u);
}

TEST_F(MachineSharedTest, OneThatIsKeptStaysUntilItIsDropped) {
  const quota::LeaseId lease =
      Lease(writer, 8, {.share_as = "w", .keep = true});
  End(writer);
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  Release(reader, lease);
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_EQ(Outcome(reader, Drop(reader, "w")), "dropped");
  EXPECT_EQ(Where(lease), "gone") << "without sessions it ends at once";
  EXPECT_EQ(Outcome(reader, Drop(reader, "w")), "NO_SUCH_LEASE");
}

TEST_F(MachineSharedTest, OfItsSessionsThoseAloneAreKilledThatRefuseToUnmap) {
  SetTenant("a", {.may_terminate = true});
  const quota::LeaseId lease = Shared();
  stubborn = {writer, reader};
  Reclaim("a");
  RunCopies();
  Follow(writer);
  RefuseMoves(reader);
  EXPECT_EQ(Where(lease), "mapped");
  RunFor(seconds(10));
  EXPECT_EQ(killed, 0) << "once may happen";
  Reclaim("a");
  RunCopies();
  RefuseMoves(reader);
  RunFor(seconds(1));
  EXPECT_EQ(killed, 1);
  RunFor(seconds(10));
  stubborn.clear();
  Reclaim("a");
  Work();
  EXPECT_EQ(Where(lease), "evicted") << "the writer follows";
  EXPECT_EQ(killed, 1);
}

TEST_F(MachineSharedTest, ADroppedOneEndsWithItsLastSession) {
  const quota::LeaseId lease =
      Lease(writer, 8, {.share_as = "w", .keep = true});
  EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  const auto attached = DropLease("a", "w");
  ASSERT_TRUE(attached.ok());
  EXPECT_EQ(*attached, 2u);
  SimClient* late = Parked("a");
  EXPECT_EQ(Outcome(late, Attach(late, "w")), "NO_SUCH_LEASE");
  EXPECT_EQ(TryShare(late, {.share_as = "w"}), "granted") << "it is free";
  Release(reader, lease);
  EXPECT_EQ(Where(lease), "mapped");
  Release(writer, lease);
  EXPECT_EQ(Where(lease), "gone") << "although it was to be kept";
}

TEST_F(MachineSharedTest, WhatIsNotSealedIsItsWritersToRelease) {
  EXPECT_EQ(TryShare(writer, {.share_as = "w"}), "granted");
  EXPECT_EQ(Outcome(reader, Drop(reader, "w")), "NO_SUCH_LEASE");
  EXPECT_EQ(ReasonOf(DropLease("a", "w").status()), "NO_SUCH_LEASE");
  EXPECT_EQ(ReasonOf(DropLease("no", "w").status()), "NO_SUCH_TENANT");
}

TEST_F(MachineSharedTest, AKeptOneGoesWithItsTenant) {
  const quota::LeaseId lease =
      Lease(writer, 8, {.share_as = "w", .keep = true});
  End(writer);
  End(reader);
  EXPECT_EQ(ReasonOf(Delete("a")), "BAD_STATE") << "it holds a lease";
  world.Do("end kept",
           [&](Turn& turn) { world.machine().operators().EndKept("a", turn); });
  EXPECT_EQ(Where(lease), "gone");
  EXPECT_TRUE(Delete("a").ok());
}

// --- How it moves.

TEST_F(MachineSharedTest, ItLeavesWhenAllAreParkedAndTheirGatesAreClosed) {
  const quota::LeaseId lease = Shared();
  EXPECT_TRUE(Enter(reader));
  Reclaim("a");
  RunFor(milliseconds(100));
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_FALSE(IsClosed(writer)) << "all or none";
  Park(reader);
  const quota::LeaseId own = Lease(reader, 2);
  Reclaim("a", 8);
  EXPECT_TRUE(IsClosed(writer));
  EXPECT_TRUE(IsClosed(reader));
  EXPECT_EQ(Told(writer, v1::BrokerMessage::kEvict), 1u);
  EXPECT_EQ(Told(reader, v1::BrokerMessage::kEvict), 1u);
  RunCopies();
  Follow(writer);
  EXPECT_EQ(Where(lease), "evicting") << "one has it mapped";
  Follow(reader);
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(Where(own), "mapped") << "the other leases may stay";
}

TEST_F(MachineSharedTest, ItComesBackOnceAndEachMapsItWhenItWantsIn) {
  const quota::LeaseId lease = Shared();
  Write(writer, lease, 500);
  const std::vector<uint64_t> written = Read(writer, lease);
  Reclaim("a");
  Work();
  ASSERT_EQ(Where(lease), "evicted");
  const uint64_t of_reader = Restore(reader);
  Work();
  EXPECT_EQ(Outcome(reader, of_reader), "restored");
  EXPECT_EQ(Read(reader, lease), written);
  EXPECT_TRUE(IsClosed(writer)) << "its own scopes did not want in";
  EXPECT_EQ(Told(writer, v1::BrokerMessage::kMap), 0u);
  const uint64_t filled = world.copies_in;
  const uint64_t of_writer = Restore(writer);
  Work();
  EXPECT_EQ(Outcome(writer, of_writer), "restored");
  EXPECT_EQ(world.copies_in, filled) << "it is filled once";
  EXPECT_EQ(Read(writer, lease), written);
}

TEST_F(MachineSharedTest, AnAttachBringsItBack) {
  const quota::LeaseId lease = Shared();
  Reclaim("a");
  Work();
  SimClient* late = Parked("a");
  const uint64_t id = Attach(late, "w", seconds(10));
  Work();
  EXPECT_EQ(Outcome(late, id), "attached");
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_TRUE(IsClosed(writer));
  // Not in time: it is told so.
  Reclaim("a");
  Work();
  Lease(Connect("b"), 60);
  SimClient* last = Parked("a");
  const uint64_t refused = Attach(last, "w", seconds(2));
  RunFor(seconds(3));
  EXPECT_EQ(Outcome(last, refused), "POOL_EXHAUSTED");
  EXPECT_EQ(Waiting(), 0u) << "nobody is to give way for it any more";
}

TEST_F(MachineSharedTest, AKeptOneThatNobodyUsesCountsAsParked) {
  const quota::LeaseId lease =
      Lease(writer, 8, {.share_as = "w", .keep = true});
  EXPECT_TRUE(Enter(writer));
  Release(writer, lease);
  Reclaim("a");
  Work();
  EXPECT_EQ(Where(lease), "evicted");
  const uint64_t id = Attach(reader, "w", seconds(10));
  Work();
  EXPECT_EQ(Outcome(reader, id), "attached");
}

TEST_F(MachineSharedTest, OneWhoseGateIsOffMakesItHardForAll) {
  const quota::LeaseId lease = Shared();
  EXPECT_FALSE(IsHard(lease));
  SimClient* off = Connect("a");
  EXPECT_EQ(Outcome(off, Attach(off, "w")), "attached");
  EXPECT_TRUE(IsHard(lease));
  Reclaim("a");
  RunFor(seconds(1));
  EXPECT_EQ(Where(lease), "mapped");
  End(off);
  EXPECT_FALSE(IsHard(lease)) << "it was the last one";
}

TEST_F(MachineSharedTest, NotWhereGuaranteesRestOnItsBytes) {
  SetTenant("b", {.guarantee = 60});
  const quota::LeaseId lease = Shared();
  SimClient* off = Connect("a");
  const uint64_t id = Attach(off, "w", seconds(10));
  EXPECT_EQ(Outcome(off, id), "OVERCOMMITTED");
  EXPECT_NE(AnswerTo(off, id).error().message().find("turn the gate on"),
            std::string::npos);
  EXPECT_FALSE(IsHard(lease));
}

TEST_F(MachineSharedTest, AllWhoUseItArePausedTogetherForAGuarantee) {
  const quota::LeaseId lease = Shared(60);
  EXPECT_TRUE(Enter(writer));
  EXPECT_TRUE(Enter(reader));
  SetTenant("b", {.guarantee = 32});
  SimClient* owner = Connect("b");
  const uint64_t id = Ask(owner, 32, {.wait = seconds(60)});
  EXPECT_TRUE(GateOf(writer).paused());
  EXPECT_TRUE(GateOf(reader).paused());
  Park(writer);
  RunFor(milliseconds(10));
  EXPECT_EQ(Where(lease), "mapped") << "one works on";
  const uint64_t restore = Restore(writer, seconds(60));
  SimClient* late = Parked("a");
  const uint64_t attach = Attach(late, "w", seconds(60));
  EXPECT_EQ(Outcome(writer, restore), "nothing");
  EXPECT_EQ(Outcome(late, attach), "waits") << "it is about to leave";
  Cancel(owner, id);
  EXPECT_EQ(Outcome(writer, restore), "restored");
  EXPECT_EQ(Outcome(late, attach), "attached");
  EXPECT_FALSE(GateOf(reader).paused());
}

TEST_F(MachineSharedTest, OneThatDoesNotAnswerMakesItHardUntilItIsGone) {
  stubborn.insert(reader);
  const quota::LeaseId lease = Shared();
  Reclaim("a");
  RunFor(seconds(3));
  EXPECT_TRUE(IsHard(lease));
  EXPECT_EQ(Where(lease), "evicting");
  stubborn.erase(reader);
  End(reader);
  EXPECT_EQ(Where(lease), "evicted") << "it was the last that had it mapped";
}

TEST_F(MachineSharedTest, AReaderThatEndsWhileItComesBackHoldsNothingUp) {
  const quota::LeaseId lease = Shared();
  Reclaim("a");
  Work();
  const uint64_t of_reader = Restore(reader);
  const uint64_t of_writer = Restore(writer);
  EXPECT_EQ(Outcome(reader, of_reader), "nothing");
  End(reader);
  Work();
  EXPECT_EQ(Outcome(writer, of_writer), "restored");
  EXPECT_EQ(Where(lease), "mapped");
}

TEST_F(MachineSharedTest, OneThatLeavesItWhileItWaitsForItIsInAtOnce) {
  const quota::LeaseId lease = Shared();
  Reclaim("a", ReclaimWish{});
  Work();
  ASSERT_EQ(Where(lease), "evicted");
  SimClient* other = Connect("b");
  const quota::LeaseId blocking = Lease(other, 60);
  const uint64_t of_writer = Restore(writer, seconds(60));
  const uint64_t of_reader = Restore(reader, seconds(60));
  Release(writer, lease);
  EXPECT_EQ(Outcome(writer, of_writer), "restored");
  EXPECT_FALSE(IsClosed(writer));
  EXPECT_EQ(Outcome(reader, of_reader), "nothing");
  Release(other, blocking);
  Work();
  EXPECT_EQ(Outcome(reader, of_reader), "restored");
}

TEST_F(MachineSharedTest, SoIsItsGroupThatAskedForIt) {
  SimClient* asker = Parked("a", "ranks");
  SimClient* other = Parked("a", "ranks");
  const quota::LeaseId lease = Shared();
  EXPECT_EQ(Outcome(other, Attach(other, "w")), "attached");
  Reclaim("a", ReclaimWish{});
  Work();
  ASSERT_EQ(Where(lease), "evicted");
  Lease(Connect("b"), 60);
  const uint64_t of_asker = Restore(asker, seconds(60));
  EXPECT_EQ(Outcome(asker, of_asker), "nothing");
  Release(other, lease);
  EXPECT_EQ(Outcome(asker, of_asker), "restored");
  EXPECT_FALSE(IsClosed(asker));
  EXPECT_FALSE(IsClosed(other));
}

TEST_F(MachineSharedTest, WhoCannotMapItIsToldAndTheOthersKeepIt) {
  const quota::LeaseId lease = Shared();
  Reclaim("a");
  Work();
  const uint64_t of_reader = Restore(reader);
  Work();
  ASSERT_EQ(Outcome(reader, of_reader), "restored");
  const uint64_t of_writer = Restore(writer);
  RefuseMoves(writer);
  EXPECT_EQ(Outcome(writer, of_writer), "DEVICE_ERROR");
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_FALSE(IsClosed(reader));
  EXPECT_TRUE(IsClosed(writer));
  const uint64_t again = Restore(writer);
  Work();
  EXPECT_EQ(Outcome(writer, again), "restored");
}

TEST_F(MachineSharedTest, AllOfThisIsTold) {
  const quota::LeaseId lease = Shared();
  Release(reader, lease);
  EXPECT_EQ(Events("lease_shared").size(), 1u);
  ASSERT_EQ(Events("lease_attached").size(), 1u);
  EXPECT_EQ(Events("lease_attached")[0].message(), "2 attached to w");
  ASSERT_EQ(Events("lease_detached").size(), 1u);
  EXPECT_EQ(Events("lease_detached")[0].message(), "1 attached to w");
}

// Of these two ways out of a pause nobody tells those who wait.
class MachineHeldBackTest : public MachineSharedTest {
 protected:
  // The writer has the lease on the device, with a scope in; the reader's gate
  // is closed. The writer is paused for an owner, and the reader wants in.
  void HoldBack(uint64_t guarantee) {
    Restore(writer);
    Work();
    EXPECT_TRUE(Enter(writer));
    SetTenant("owner", {.guarantee = guarantee});
    owner = Connect("owner");
    asked = Ask(owner, guarantee, {.wait = seconds(60)});
    EXPECT_TRUE(GateOf(writer).paused());
    restore = Restore(reader, seconds(20));
    Work();
    EXPECT_EQ(Outcome(reader, restore), "nothing");
  }
  void TakeAway() {
    Reclaim("a");
    Work();
  }
  SimClient* owner = nullptr;
  uint64_t asked = 0;
  uint64_t restore = 0;
};

TEST_F(MachineHeldBackTest, WhoWaitsComesInWhenThePausedOneEnds) {
  Shared(25);
  TakeAway();
  Restore(writer);
  Work();
  Lease(writer, 15);
  HoldBack(38);  // lacks 14: the shared lease needs no copy, so it is chosen
  End(writer);
  Work();
  EXPECT_EQ(Outcome(owner, asked), "granted") << "15 were its own";
  EXPECT_EQ(Outcome(reader, restore), "restored");
}

TEST_F(MachineHeldBackTest, WhoWaitsComesInWhenThePausedGateIsTurnedOff) {
  const quota::LeaseId lease = Shared(25);
  TakeAway();
  Lease(Active("b"), 15);
  HoldBack(25);  // lacks 1: tenant a has borrowed more
  EXPECT_EQ(Outcome(writer, SetGate(writer, false)), "gate set");
  Work();
  EXPECT_EQ(Outcome(reader, restore), "restored");
  EXPECT_TRUE(IsHard(lease));
}

class MachineFewAttachesTest : public MachineSharedTest {
 protected:
  static MachineWorld Shape() {
    MachineWorld shape;
    shape.options.max_requests_per_session = 2;
    return shape;
  }
  MachineFewAttachesTest() : MachineSharedTest(Shape()) {}
};

TEST_F(MachineFewAttachesTest, WhatWaitsIsBounded) {
  EXPECT_EQ(TryShare(writer, {.share_as = "w"}), "granted");
  const uint64_t first = Attach(reader, "w", seconds(60));
  Attach(reader, "w", seconds(60));
  EXPECT_EQ(Outcome(reader, Attach(reader, "w", seconds(60))),
            "TOO_MANY_REQUESTS");
  Cancel(reader, first);
  EXPECT_EQ(Outcome(reader, Attach(reader, "w", seconds(60))), "waits");
}

}  // namespace
}  // namespace gmb::broker
