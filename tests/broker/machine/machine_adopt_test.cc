// A broker takes over from one that died (docs/handover.md): what goes on, what
// is said again, and what is done about records that do not fit together. Any
// instant of a death is tried by machine_property_test.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

class MachineAdoptTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("owner", {.guarantee = 32});
    idle = Parked("a");
    session = idle->session;
  }
  // The records that the next broker finds are changed first.
  void DieSpoiled(const std::function<void(LeaseRecord*)>& spoil) {
    world.Die([&](Adoption* adoption) {
      for (LeaseRecord& lease : adoption->leases) {
        spoil(&lease);
        for (const SlabRecord& slab : lease.slabs)
          imported[slab.id] = adoption->slabs[slab.id];
      }
    });
  }
  // Of the slabs that were imported.
  [[nodiscard]] size_t Alive() const {
    return static_cast<size_t>(std::count_if(
        imported.begin(), imported.end(),
        [&](const auto& slab) { return world.IsAlive(kPool, slab.first); }));
  }
  // In the next turn.
  void DieOnceRecorded() {
    world.SetFate([this] {
      world.SetFate(nullptr);
      return SimWorld::Fate::kDiesOnceItIsRecorded;
    });
  }
  [[nodiscard]] std::string Why() const {
    return world.not_adopted.empty() ? "" : world.not_adopted.front().why;
  }
  [[nodiscard]] bool Lives(uint64_t id) const {
    return world.state().sessions->Find(id) != nullptr;
  }
  SimClient* idle = nullptr;
  uint64_t session = 0;
  absl::flat_hash_map<SlabId, Slab> imported;
};

TEST_F(MachineAdoptTest, NobodyGreetsAgainAndLeasesAreWhatTheyWere) {
  const quota::LeaseId lease = Lease(idle, 7);
  const quota::LeaseId other = Lease(idle, 3, {.contents = v1::DISCARD});
  const uint64_t leased = Of("a").leased_bytes;
  world.Die();
  EXPECT_THAT(world.not_adopted, SizeIs(0));
  ASSERT_TRUE(Lives(session));
  EXPECT_EQ(world.state().sessions->WithToken(idle->token)->id, session);
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_EQ(Of("a").leased_bytes, leased);
  EXPECT_EQ(Outcome(idle, Release(idle, other)), "released");
}

TEST_F(MachineAdoptTest, IdsGoOnAndAreNotGivenOutTwice) {
  const quota::LeaseId lease = Lease(idle, 7);
  Release(idle, lease);
  world.Die();
  EXPECT_GT(Lease(idle, 7).value, lease.value);
  EXPECT_GT(Connect("a")->session, session);
}

TEST_F(MachineAdoptTest, AGuaranteeThatWasLentIsServedAfterwards) {
  const quota::LeaseId lease = Lease(idle, 60);
  world.Die();
  SimClient* owner = Connect("owner");
  const uint64_t id = Ask(owner, 32, {.wait = seconds(60)});
  Work();
  EXPECT_EQ(Outcome(owner, id), "granted");
  EXPECT_EQ(Where(lease), "evicted");
}

TEST_F(MachineAdoptTest, WhatIsAwayComesBackWithItsContents) {
  const quota::LeaseId lease = Lease(idle, 60);
  Reclaim("a");
  Work();
  ASSERT_EQ(Where(lease), "evicted");
  world.Die();
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_TRUE(IsClosed(idle));
  const uint64_t restore = Restore(idle);
  Work();
  EXPECT_EQ(Outcome(idle, restore), "restored");
  EXPECT_EQ(Where(lease), "mapped");
}

TEST_F(MachineAdoptTest, AnEvictionIsBegunAnewAndAskedForWithANewNumber) {
  const quota::LeaseId lease = Lease(idle, 60);
  Reclaim("a");
  ASSERT_EQ(Where(lease), "evicting");
  const uint64_t before = idle->last_move;
  world.Die();
  EXPECT_EQ(Where(lease), "evicting");
  EXPECT_GE(idle->last_move, uint64_t{1} << 32);
  EXPECT_GT(idle->last_move, before);
  Work();
  EXPECT_EQ(Where(lease), "evicted");
}

TEST_F(MachineAdoptTest, ARequestThatWaitsGoesOnWaiting) {
  const quota::LeaseId lease = Lease(idle, 24, {.contents = v1::RESIDENT});
  SimClient* owner = Connect("owner");
  ASSERT_EQ(Outcome(owner, Ask(owner, 32)), "granted");
  SimClient* waiter = Parked("a");
  const uint64_t id = Ask(waiter, 20, {.wait = seconds(60)});
  ASSERT_EQ(Outcome(waiter, id), "waits");
  world.Die();
  EXPECT_EQ(Outcome(waiter, id), "waits");
  Release(idle, lease);
  Work();
  EXPECT_EQ(Outcome(waiter, id), "granted");
}

TEST_F(MachineAdoptTest, AGrantThatWasLostIsGivenAgain) {
  SimClient* client = Connect("a");
  Work();
  DieOnceRecorded();
  const uint64_t id = Ask(client, 4);
  Work();
  EXPECT_EQ(Outcome(client, id), "granted");
  EXPECT_THAT(client->leases, SizeIs(1));
  EXPECT_EQ(Of("a").leases, 1u) << "and not a second one";
}

TEST_F(MachineAdoptTest, AReleaseThatWasLostIsDone) {
  const quota::LeaseId lease = Lease(idle, 4);
  DieOnceRecorded();
  const uint64_t id = Release(idle, lease);
  EXPECT_EQ(Outcome(idle, id), "released");
  // A lease of its own that it never had is told from that.
  EXPECT_EQ(Outcome(idle, Release(idle, {lease.value + 100'000})),
            "NO_SUCH_LEASE");
}

TEST_F(MachineAdoptTest, ASharedLeaseKeepsItsNameAndItsReaders) {
  Lease(idle, 4, {.share_as = "weights", .keep = true});
  SimClient* reader = Parked("a");
  const uint64_t before = Attach(reader, "weights");
  ASSERT_EQ(Outcome(reader, before), "attached");
  world.Die();
  SimClient* late = Parked("a");
  const uint64_t after = Attach(late, "weights");
  EXPECT_EQ(Outcome(late, after), "attached");
  for (SimClient* client : {idle, reader, late}) End(client);
  EXPECT_EQ(Of("a").leases, 1u) << "it was asked to be kept";
  world.Die();
  EXPECT_EQ(Of("a").leases, 1u);
  SimClient* last = Parked("a");
  EXPECT_EQ(Outcome(last, Attach(last, "weights")), "attached");
}

TEST_F(MachineAdoptTest, ADrainGoesOn) {
  ASSERT_TRUE(Drain(true).ok());
  world.Die();
  EXPECT_EQ(Outcome(idle, Ask(idle, 1)), "DRAINING");
}

// Its answer is lost, and by the time that it is repeated the name may be
// another lease's.
TEST_F(MachineAdoptTest, ADropThatWasLostDropsNothingElse) {
  Lease(idle, 4, {.share_as = "w", .keep = true});
  SimClient* reader = Parked("a");
  ASSERT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  DieOnceRecorded();
  EXPECT_EQ(Outcome(reader, Drop(reader, "w")), "dropped");
  const uint64_t first = reader->last_request;
  const quota::LeaseId later = Lease(idle, 4, {.share_as = "w", .keep = true});
  v1::ClientMessage again;
  again.set_request_id(first);
  again.mutable_drop()->set_name("w");
  world.Die();
  world.Send(reader, again);
  EXPECT_EQ(Outcome(reader, first), "dropped");
  EXPECT_FALSE(world.state().LeaseAt(later).sharing->dropped);
  EXPECT_EQ(Outcome(reader, Drop(reader, "w")), "dropped");
  EXPECT_TRUE(world.state().LeaseAt(later).sharing->dropped);
}

// Nobody knows whether it has read its Welcome.
TEST_F(MachineAdoptTest, OneThatWasBeingGreetedConnectsAgain) {
  SimClient* late = Parked("a");
  const uint64_t id = late->session;
  world.Die([&](Adoption* adoption) {
    for (AdoptedSession& one : adoption->sessions)
      one.record.greeting = one.record.id == id;
  });
  EXPECT_THAT(Why(), HasSubstr("connect again"));
  EXPECT_FALSE(Lives(id));
  EXPECT_TRUE(Lives(session));
  // One that has a stream has read it.
  world.Die();
  EXPECT_TRUE(Lives(session));
}

// --- A record that does not fit ends its session, and no other's.

TEST_F(MachineAdoptTest, ASlabThatTheDeviceDoesNotTakeEndsItsSessionAlone) {
  Lease(idle, 4);
  SimClient* other = Parked("a");
  const quota::LeaseId lease = Lease(other, 4);
  world.Die([&](Adoption* adoption) {
    adoption->slabs.erase(adoption->leases.front().slabs.front().id);
  });
  EXPECT_THAT(Why(), HasSubstr("did not take this slab"));
  EXPECT_FALSE(Lives(session));
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_EQ(Of("a").leases, 1u);
}

TEST_F(MachineAdoptTest, RecordsThatMakeNoSenseAreNotBelieved) {
  const std::vector<std::pair<std::string, std::function<void(LeaseRecord*)>>>
      spoiled = {
          {"tenant is no more", [](LeaseRecord* r) { r->tenant = "nobody"; }},
          {"does not serve its device",
           [](LeaseRecord* r) { r->device = "x"; }},
          {"does not serve its device", [](LeaseRecord* r) { r->device = ""; }},
          {"makes no sense", [](LeaseRecord* r) { r->bytes = 0; }},
          {"makes no sense", [](LeaseRecord* r) { r->bytes += 1; }},
          {"makes no sense",
           [](LeaseRecord* r) { r->bytes = uint64_t{1} << 63; }},
          {"makes no sense",
           [](LeaseRecord* r) { r->contents = static_cast<v1::Contents>(77); }},
          {"not all of it", [](LeaseRecord* r) { r->slabs.pop_back(); }},
          {"another lease's too",
           [](LeaseRecord* r) { r->slabs.back() = r->slabs.front(); }},
          {"another size", [](LeaseRecord* r) { r->slabs[0].bytes *= 2; }},
          {"nowhere", [](LeaseRecord* r) { r->torn = true; }},
          {"nowhere",
           [](LeaseRecord* r) { r->place = LeaseRecord::Place::kHost; }},
          {"other users", [](LeaseRecord* r) { r->session = r->session + 1; }},
          {"not its",
           [](LeaseRecord* r) { r->mappings.push_back(r->mappings[0]); }},
          {"no room for it",
           [](LeaseRecord* r) {
             r->torn = r->has_room = r->room_is_true = true;
             r->room = {{0, r->bytes - kGranule}};
           }},
          {"no room for it",
           [](LeaseRecord* r) {
             r->torn = r->has_room = r->room_is_true = true;
             r->room = {{uint64_t{1} << 60, r->bytes}};
           }},
      };
  for (const auto& [why, spoil] : spoiled) {
    SCOPED_TRACE(why);
    SimClient* client = Parked("a");
    const uint64_t id = client->session;
    Lease(client, 8);
    imported.clear();
    DieSpoiled(spoil);
    EXPECT_THAT(Why(), HasSubstr(why));
    EXPECT_FALSE(Lives(id));
    EXPECT_TRUE(Lives(session));
    EXPECT_EQ(Of("a").leases, 0u);
    EXPECT_GT(imported.size(), 0u);
    RunFor(seconds(20));
    EXPECT_EQ(Parts().granted_bytes, 0u);
    EXPECT_EQ(Parts().scrubbing_bytes, 0u);
    // Of a device that is not served none would have been imported.
    if (why != "does not serve its device") {
      EXPECT_EQ(Alive(), 0u);
    }
  }
}

TEST_F(MachineAdoptTest, OneNameOneTokenOneId) {
  SimClient* other = Parked("a");
  const uint64_t twin = other->session;
  world.Die([&](Adoption* adoption) {
    adoption->sessions.back().record.token =
        adoption->sessions.front().record.token;
  });
  EXPECT_THAT(Why(), HasSubstr("another session's"));
  EXPECT_TRUE(Lives(session));
  EXPECT_FALSE(Lives(twin));
}

TEST_F(MachineAdoptTest, ALeaseWhoseSessionIsNotThereHasEnded) {
  Lease(idle, 8);
  world.Die([&](Adoption* adoption) {
    imported = adoption->slabs;
    adoption->sessions.clear();
  });
  EXPECT_EQ(Of("a").leases, 0u);
  ASSERT_GT(imported.size(), 0u);
  RunFor(seconds(20));
  EXPECT_EQ(Parts().granted_bytes, 0u);
  EXPECT_EQ(Alive(), 0u);
}

}  // namespace
}  // namespace gmb::broker
