// The record of a session, a lease and a pool, in each state that they can be
// in (docs/handover.md).
#include "broker/machine/record_of.h"

#include <chrono>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Place = LeaseRecord::Place;

class RecordOfTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    idle = Parked("a");
  }
  [[nodiscard]] LeaseRecord Of(quota::LeaseId lease) const {
    return RecordOf(state(), state().LeaseAt(lease));
  }
  [[nodiscard]] SessionRecord Of(const SimClient* client) const {
    return RecordOf(state(), SessionOf(client));
  }
  [[nodiscard]] PoolRecord OfPool() const {
    return RecordOf(state(), state().PoolAt(kPool));
  }
  SimClient* idle = nullptr;
};

TEST_F(RecordOfTest, ASessionIsRecordedWithItsPeerAndItsGate) {
  PeerIdentity peer = PeerOf("b");
  peer.uid = 1001;
  peer.gid = 1002;
  peer.program = "train.py";
  SimClient* client = *world.Open(peer);
  SessionRecord record = Of(client);
  EXPECT_EQ(record.id, client->session);
  EXPECT_EQ(record.token, client->token);
  EXPECT_FALSE(record.token.empty());
  EXPECT_EQ(record.tenant, "b");
  EXPECT_EQ(record.origin, Origin::kTenantDirectory);
  EXPECT_EQ(record.tenant_directory, "b");
  EXPECT_EQ(record.pid, peer.pid);
  EXPECT_EQ(record.uid, 1001u);
  EXPECT_EQ(record.gid, 1002u);
  EXPECT_EQ(record.program, "train.py");
  EXPECT_FALSE(record.gate_on);
  Park(client);
  SetGate(client, true, "ranks");
  record = Of(client);
  EXPECT_TRUE(record.gate_on);
  EXPECT_EQ(record.group, "ranks");
  EXPECT_EQ(record.last_drop, 0u);
  const uint64_t drop = Drop(client, "nothing of that name");
  EXPECT_EQ(Of(client).last_drop,
            Outcome(client, drop) == "dropped" ? drop : 0);
}

TEST_F(RecordOfTest, WhyItNeverLendsIsPrintableAndShort) {
  v1::ClientMessage message;
  message.mutable_set_gate()->set_on(false);
  message.mutable_set_gate()->set_never_lends("no\nway\x1b[31m");
  Send(idle, message);
  EXPECT_EQ(Of(idle).never_lends, "no way [31m");
  message.mutable_set_gate()->set_never_lends("");
  Send(idle, message);
  EXPECT_EQ(Of(idle).never_lends, "no way [31m") << "nothing said is no change";
  message.mutable_set_gate()->set_never_lends(std::string(100'000, 'x'));
  Send(idle, message);
  EXPECT_LT(Of(idle).never_lends.size(), 1000u);
  EXPECT_EQ(Of(idle).never_lends.find_first_not_of('x'), std::string::npos);
}

TEST_F(RecordOfTest, ALeaseIsRecordedAsItWasAskedForAndAsItIsCharged) {
  v1::ClientMessage message;
  message.mutable_acquire()->set_bytes(4 * kGranule);
  message.mutable_acquire()->set_contents(v1::DISCARD);
  const uint64_t id = Send(idle, message);
  RunDevice();
  const quota::LeaseId lease{AnswerTo(idle, id).grant().lease_id()};
  LeaseRecord record = Of(lease);
  EXPECT_EQ(record.id, lease.value);
  EXPECT_EQ(record.session, idle->session);
  EXPECT_EQ(record.tenant, "a");
  EXPECT_EQ(record.device, "sim-1");
  EXPECT_EQ(record.bytes, 4 * kGranule);
  EXPECT_EQ(record.asked_bytes, 4 * kGranule);
  EXPECT_EQ(record.contents, v1::DISCARD);
  EXPECT_TRUE(record.soft);
  EXPECT_FALSE(record.has_room) << "nothing of it is to be kept";
  EXPECT_EQ(record.place, Place::kDevice);
  ASSERT_THAT(record.mappings, SizeIs(1));
  EXPECT_EQ(record.mappings[0].session, idle->session);
  EXPECT_EQ(record.mappings[0].request, id);
  EXPECT_FALSE(record.mapped);
  EXPECT_FALSE(record.mappings[0].mapped);
  v1::ClientMessage mapped;
  mapped.mutable_mapped()->set_lease_id(lease.value);
  Notify(idle, mapped);
  record = Of(lease);
  EXPECT_TRUE(record.mapped);
  EXPECT_TRUE(record.mappings[0].mapped);
  uint64_t bytes = 0;
  for (const SlabRecord& slab : record.slabs) bytes += slab.bytes;
  EXPECT_EQ(bytes, record.bytes);
  EXPECT_FALSE(Of(Lease(Connect("b"), 1)).soft) << "its gate is off";
}

TEST_F(RecordOfTest, WhereItIsIsWhatASuccessorFinds) {
  const quota::LeaseId lease = Lease(idle, 64);
  EXPECT_EQ(Of(lease).place, Place::kDevice);
  EXPECT_TRUE(Of(lease).has_room);
  EXPECT_FALSE(Of(lease).room_is_true);
  EXPECT_THAT(Of(lease).room, IsEmpty());
  Reclaim("a");
  EXPECT_EQ(Of(lease).place, Place::kLeaving);
  EXPECT_TRUE(Of(lease).mappings[0].asked);
  EXPECT_FALSE(Of(lease).room_is_true) << "the slabs are";
  Follow(idle);
  EXPECT_FALSE(Of(lease).mappings[0].asked);
  EXPECT_TRUE(Of(lease).mappings[0].unmapped);
  Work();
  EXPECT_EQ(Of(lease).place, Place::kHost);
  EXPECT_THAT(Of(lease).slabs, IsEmpty());
  EXPECT_TRUE(Of(lease).room_is_true);
  uint64_t bytes = 0;
  for (const device::HostExtent& extent : Of(lease).room) bytes += extent.bytes;
  EXPECT_EQ(bytes, 64 * kGranule);
  RunFor(seconds(10));
  Restore(idle);
  ASSERT_TRUE(state().LeaseAt(lease).held->preparing);
  EXPECT_EQ(Of(lease).place, Place::kHost) << "nothing is on the device yet";
  EXPECT_THAT(Of(lease).slabs, IsEmpty());
  RunDevice();
  EXPECT_EQ(Of(lease).place, Place::kReturning);
  EXPECT_TRUE(Of(lease).mappings[0].asked);
  EXPECT_FALSE(Of(lease).slabs.empty());
  Work();
  EXPECT_EQ(Of(lease).place, Place::kDevice);
  EXPECT_FALSE(Of(lease).mappings[0].unmapped);
}

TEST_F(RecordOfTest, AShareIsRecordedWithItsNameAndItsFate) {
  const quota::LeaseId lease = Lease(idle, 4, {.share_as = "w", .keep = true});
  LeaseRecord record = Of(lease);
  EXPECT_EQ(record.share_as, "w");
  EXPECT_TRUE(record.keep);
  EXPECT_TRUE(record.sealed);
  EXPECT_TRUE(record.shared);
  EXPECT_FALSE(record.dropped);
  Drop(idle, "w");
  EXPECT_TRUE(Of(lease).dropped);
  EXPECT_FALSE(Of(Lease(idle, 1)).sealed);
}

TEST_F(RecordOfTest, ALeaseIsRecordedFromItsGrantToItsEnd) {
  const uint64_t id = Ask(idle, 64);
  ASSERT_EQ(Outcome(idle, id), "nothing");
  ASSERT_EQ(state().leases->size(), 1u);
  EXPECT_FALSE(IsRecorded(state().LeaseAt(TheLease()))) << "it is being made";
  RunDevice();
  EXPECT_TRUE(IsRecorded(state().LeaseAt(TheLease())));
  Reclaim("a");
  End(idle);
  ASSERT_EQ(state().leases->size(), 1u) << "the copier still reads it";
  EXPECT_FALSE(IsRecorded(state().LeaseAt(TheLease())));
}

TEST_F(RecordOfTest, APoolIsRecordedWithWhatIsOwedToIt) {
  EXPECT_EQ(OfPool().device, "sim-1");
  EXPECT_EQ(OfPool().baseline_bytes, 72 * kGranule);
  EXPECT_FALSE(OfPool().draining);
  EXPECT_THAT(OfPool().debts, IsEmpty());
  SetTenant("gone");
  for (const char* tenant : {"b", "gone"}) {
    SimClient* liar = Connect(tenant);
    const quota::LeaseId lease =
        Lease(liar, tenant == std::string("b") ? 4 : 2);
    liar->leases.erase(lease.value);  // and it stays mapped
    Release(liar, lease);
    End(liar);
  }
  ASSERT_TRUE(Delete("gone").ok());
  RunFor(seconds(10));
  // A debt whose tenant has been deleted is nobody's.
  EXPECT_THAT(OfPool().debts, ElementsAre(DebtRecord{"b", 4 * kGranule},
                                          DebtRecord{"", 2 * kGranule}));
  ASSERT_TRUE(Drain(true).ok());
  EXPECT_TRUE(OfPool().draining);
}

}  // namespace
}  // namespace gmb::broker
