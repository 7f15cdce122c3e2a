// The use that a broker that takes over makes of each part that it is given
// (docs/handover.md): debts, leases that nobody uses, records that are in hand.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class MachineAdoptPartsTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
  }
  void DieOwing(std::vector<DebtRecord> debts) {
    world.Die([&](Adoption* adoption) {
      ASSERT_THAT(adoption->pools, SizeIs(1));
      adoption->pools[0].debts = std::move(debts);
    });
  }
  // A lease that is kept, and that nobody is attached to.
  quota::LeaseId Kept() {
    SimClient* writer = Parked("a");
    const quota::LeaseId lease =
        Lease(writer, 4, {.share_as = "w", .keep = true});
    End(writer);
    EXPECT_EQ(Where(lease), "mapped");
    return lease;
  }
  uint64_t Owes(const std::string& tenant) {
    return Of(tenant).unreturned_bytes / kGranule;
  }
};

// --- Debts.

TEST_F(MachineAdoptPartsTest, DebtsCountAtOnceAndUntilTheDeviceSaysOtherwise) {
  SimClient* client = Connect("a");
  Lease(client, 8);
  DieOwing({{"a", 5 * kGranule + 1},
            {"b", 3 * kGranule},
            {"a", 2 * kGranule},
            {"gone", 4 * kGranule},
            {"", kGranule},
            {"b", kGranule - 1}});
  EXPECT_EQ(Owes("a"), 7u) << "in whole granules";
  EXPECT_EQ(Owes("b"), 3u);
  EXPECT_EQ(InPool().missing_bytes, 5 * kGranule)
      << "who has been deleted owes nothing: the pool lacks it";
  EXPECT_EQ(Parts().unreturned_bytes, 10 * kGranule);
  EXPECT_EQ(Parts().missing_bytes, 5 * kGranule);
  EXPECT_EQ(Outcome(client, Ask(client, 42)), "POOL_EXHAUSTED");
  // Nobody holds any of it: the first look at the device says so.
  RunDevice();
  EXPECT_EQ(Owes("a"), 0u);
  EXPECT_EQ(Owes("b"), 0u);
  EXPECT_EQ(InPool().missing_bytes, 0u);
  EXPECT_NE(Lease(client, 42).value, 0u);
}

TEST_F(MachineAdoptPartsTest, NobodyOwesMoreThanThePoolHas) {
  DieOwing({{"a", 60 * kGranule}, {"b", uint64_t{1} << 62}, {"a", kGranule}});
  EXPECT_EQ(Owes("a"), 60u);
  EXPECT_EQ(Owes("b"), 4u);
  EXPECT_EQ(InPool().unreturned_bytes, 64 * kGranule);
  RunDevice();
  EXPECT_EQ(InPool().unreturned_bytes, 0u);
}

TEST_F(MachineAdoptPartsTest, WithoutDebtsNothingIsSaidOfAny) {
  DieOwing({{"a", kGranule - 1}});
  EXPECT_THAT(Events("unreturned_changed"), IsEmpty());
  EXPECT_THAT(Events("missing_changed"), IsEmpty());
  DieOwing({{"a", kGranule}});
  EXPECT_THAT(Events("unreturned_changed"), SizeIs(1));
  EXPECT_THAT(Events("missing_changed"), IsEmpty());
}

TEST_F(MachineAdoptPartsTest, ADeviceThatIsNotServedAnyMoreIsPassedOver) {
  world.Die([&](Adoption* adoption) {
    for (const char* device : {"sim-7", ""}) {
      PoolRecord other = adoption->pools[0];
      other.device = device;
      other.draining = true;
      other.debts = {{"a", 8 * kGranule}};
      adoption->pools.push_back(other);
    }
  });
  EXPECT_EQ(Owes("a"), 0u);
  EXPECT_FALSE(InPool().draining);
}

// --- Leases that nobody uses.

TEST_F(MachineAdoptPartsTest, OnlyWhatWasToBeKeptOutlivesItsUsers) {
  const std::vector<std::pair<const char*, std::function<void(LeaseRecord*)>>>
      rows = {{"kept", [](LeaseRecord* /*as it is*/) {}},
              {"dropped", [](LeaseRecord* r) { r->dropped = true; }},
              {"not kept", [](LeaseRecord* r) { r->keep = false; }},
              {"not sealed", [](LeaseRecord* r) { r->shared = false; }}};
  for (const auto& [why, change] : rows) {
    const quota::LeaseId lease = Kept();
    world.Die([&, change = change](Adoption* adoption) {
      ASSERT_THAT(adoption->leases, SizeIs(1));
      change(&adoption->leases[0]);
    });
    const bool stays = std::string(why) == "kept";
    EXPECT_EQ(Where(lease), stays ? "mapped" : "gone") << why;
    EXPECT_THAT(world.not_adopted, IsEmpty()) << why;
    if (!stays) continue;
    SimClient* reader = Parked("a");
    EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
    EXPECT_EQ(Outcome(reader, Drop(reader, "w")), "dropped");
    End(reader);
    Work();
    EXPECT_EQ(Where(lease), "gone");
  }
}

// The session that used it has ended; whose it is says nothing about that.
TEST_F(MachineAdoptPartsTest, UsersThatAreNoMoreAreForgotten) {
  SimClient* writer = Parked("a");
  const quota::LeaseId lease =
      Lease(writer, 4, {.share_as = "w", .keep = true});
  SimClient* reader = Parked("a");
  ASSERT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  world.Die([&](Adoption* adoption) {
    std::erase_if(adoption->sessions, [&](const AdoptedSession& one) {
      return one.record.id == reader->session;
    });
  });
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_THAT(world.state().LeaseAt(lease).move->mappings, SizeIs(1));
}

// Nobody is hung up for it, and it is told all the same.
TEST_F(MachineAdoptPartsTest, AKeptLeaseThatIsLostIsSaidOfNoSession) {
  const quota::LeaseId lease = Kept();
  SimClient* other = Parked("a");
  world.Die([&](Adoption* adoption) { adoption->slabs.clear(); });
  EXPECT_EQ(Where(lease), "gone");
  ASSERT_THAT(world.not_adopted, SizeIs(1));
  EXPECT_EQ(world.not_adopted[0].session, 0u);
  EXPECT_THAT(world.not_adopted[0].why, HasSubstr("did not take this slab"));
  EXPECT_TRUE(IsOpen(other));
}

TEST_F(MachineAdoptPartsTest, AGateWhosePageIsLostEndsItsSession) {
  SimClient* client = Parked("a");
  const uint64_t id = client->session;
  world.Die([&](Adoption* adoption) { adoption->sessions[0].gate = nullptr; });
  ASSERT_THAT(world.not_adopted, SizeIs(1));
  EXPECT_EQ(world.not_adopted[0].session, id);
  EXPECT_THAT(world.not_adopted[0].why, HasSubstr("page of its gate"));
}

// --- The record in hand, for the successor of one that dies of it.

TEST_F(MachineAdoptPartsTest, EachRecordIsNamedBeforeItIsTaken) {
  SimClient* one = Parked("a");
  SimClient* two = Parked("a");
  const quota::LeaseId first = Lease(one, 4);
  const quota::LeaseId second = Lease(two, 4);
  std::vector<uint64_t> sessions;
  std::vector<uint64_t> leases;
  world.Die([&](Adoption* adoption) {
    adoption->takes_session = [&](const SessionRecord& record) {
      sessions.push_back(record.id);
    };
    adoption->takes_lease = [&](const LeaseRecord& record) {
      leases.push_back(record.id);
    };
  });
  EXPECT_THAT(sessions, ElementsAre(one->session, two->session, 0u));
  // Checked, put into the books, and its move begun.
  EXPECT_THAT(leases, ElementsAre(first.value, second.value, first.value,
                                  second.value, first.value, second.value));
}

// --- Answers that may have been lost.

TEST_F(MachineAdoptPartsTest, AnAttachThatIsRepeatedIsAnsweredAsAnAttach) {
  SimClient* writer = Parked("a");
  const quota::LeaseId lease = Lease(writer, 4, {.share_as = "w"});
  SimClient* reader = Parked("a");
  const uint64_t id = Attach(reader, "w");
  ASSERT_EQ(Outcome(reader, id), "attached");
  world.Die();
  v1::ClientMessage again;
  again.set_request_id(id);
  again.mutable_attach()->set_name("w");
  reader->said.clear();
  reader->leases.clear();  // it never came
  reader->granted_by.clear();
  reader->asked[id] = again;
  world.HoldSlabs(writer->leases.at(lease.value), false);
  world.Send(reader, again);
  EXPECT_EQ(Outcome(reader, id), "attached");
  EXPECT_EQ(AnswerTo(reader, id).grant().lease_id(), lease.value);
  EXPECT_THAT(world.state().LeaseAt(lease).move->mappings, SizeIs(2));
}

// Only a client that lies does so: it had the lease's id from the answer.
TEST_F(MachineAdoptPartsTest, OneThatIsRepeatedAfterItsReleaseIsANewOne) {
  SimClient* client = Parked("a");
  const uint64_t id = Ask(client, 4);
  RunDevice();
  const uint64_t lease = AnswerTo(client, id).grant().lease_id();
  world.Die();
  Release(client, {lease});
  v1::ClientMessage again;
  again.set_request_id(id);
  again.mutable_acquire()->set_bytes(4 * kGranule);
  client->asked[id] = again;
  world.Send(client, again);
  RunDevice();
  EXPECT_GT(AnswerTo(client, id).grant().lease_id(), lease);
  EXPECT_EQ(Of("a").leases, 1u);
}

}  // namespace
}  // namespace gmb::broker
