// Exported leases (docs/shared.md): who may attach, what stays, and what it costs.
#include <set>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;

class MachineExportTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    exporter = Parked("a");
    importer = Parked("a");
  }
  uint64_t Export(SimClient* client, quota::LeaseId lease,
                  const std::string& key) {
    v1::ClientMessage message;
    message.mutable_export_lease()->set_lease_id(lease.value);
    message.mutable_export_lease()->set_key(key);
    return Send(client, message);
  }
  uint64_t Export(quota::LeaseId lease) {
    return Export(exporter, lease, kKey);
  }
  uint64_t AttachBy(SimClient* client, quota::LeaseId lease,
                    const std::string& key) {
    v1::ClientMessage message;
    message.mutable_attach()->mutable_exported()->set_lease_id(lease.value);
    message.mutable_attach()->mutable_exported()->set_key(key);
    return Send(client, message);
  }
  // Of the exporter, which the importer has, too.
  quota::LeaseId Exported(uint64_t granules) {
    const quota::LeaseId lease = Lease(exporter, granules);
    EXPECT_EQ(Outcome(exporter, Export(lease)), "granted");
    EXPECT_EQ(Outcome(importer, AttachBy(importer, lease, kKey)), "attached");
    return lease;
  }
  static std::set<SlabId> SlabsOf(SimClient* client, quota::LeaseId lease) {
    std::set<SlabId> slabs;
    for (const auto& slab : client->leases.at(lease.value).slabs)
      slabs.insert(slab.id);
    return slabs;
  }
  const std::string kKey = std::string(16, 'k');
  const std::string kOther = std::string(16, 'o');
  SimClient* exporter = nullptr;
  SimClient* importer = nullptr;
};

TEST_F(MachineExportTest, ItsKeyLetsTheTenantsSessionsIn) {
  const quota::LeaseId lease = Exported(8);
  const uint64_t again = Export(exporter, lease, kOther);
  EXPECT_EQ(AnswerTo(exporter, again).grant().export_key(), kKey);
  EXPECT_EQ(Of("a").leased_bytes, 8 * kGranule) << "it is charged once";

  SimClient* late = Parked("a");
  EXPECT_EQ(Outcome(late, AttachBy(late, lease, kOther)), "NO_SUCH_LEASE");
  EXPECT_EQ(Outcome(late, AttachBy(late, lease, "")), "NO_SUCH_LEASE");
  EXPECT_EQ(Outcome(late, AttachBy(late, {lease.value + 1}, kKey)),
            "NO_SUCH_LEASE");
  SimClient* stranger = Parked("b");
  EXPECT_EQ(Outcome(stranger, AttachBy(stranger, lease, kKey)),
            "NO_SUCH_LEASE");
  EXPECT_EQ(Outcome(importer, AttachBy(importer, lease, kKey)), "BAD_STATE");
  EXPECT_EQ(Outcome(importer, Export(importer, lease, kKey)), "BAD_STATE");
  EXPECT_EQ(Outcome(exporter, Seal(exporter, lease)), "BAD_STATE");

  const quota::LeaseId plain = Lease(exporter, 2);
  EXPECT_EQ(Outcome(late, AttachBy(late, plain, "")), "NO_SUCH_LEASE");
  EXPECT_EQ(Outcome(exporter, Export(exporter, plain, "short")), "BAD_REQUEST");
  EXPECT_EQ(Outcome(importer, Export(importer, plain, kKey)), "NO_SUCH_LEASE");
  const quota::LeaseId named = Lease(exporter, 2, {.share_as = "w"});
  EXPECT_EQ(Outcome(exporter, Export(named)), "BAD_STATE");
}

TEST_F(MachineExportTest, ItLivesWithTheLastWhoHasItAndIsNotUsedAgain) {
  const quota::LeaseId lease = Exported(8);
  const SlabId slab = importer->leases.at(lease.value).slabs.front().id;
  EXPECT_EQ(Outcome(exporter, Release(exporter, lease)), "released");
  EXPECT_EQ(Where(lease), "mapped");
  SimClient* late = Parked("a");
  EXPECT_EQ(Outcome(late, AttachBy(late, lease, kKey)), "attached");
  EXPECT_EQ(Outcome(late, Release(late, lease)), "released");
  EXPECT_EQ(Outcome(importer, Release(importer, lease)), "released");
  EXPECT_EQ(Where(lease), "gone");
  RunDevice();
  EXPECT_FALSE(world.IsAlive(kPool, slab));
  EXPECT_EQ(Outcome(late, AttachBy(late, lease, kKey)), "NO_SUCH_LEASE");
  End(exporter);
  const quota::LeaseId next = Lease(importer, 8);
  EXPECT_EQ(Where(next), "mapped");
}

// A process that imported a handle of it may have it still.
TEST_F(MachineExportTest, ItsMemoryServesNobodyEvenBeforeItIsDestroyed) {
  const quota::LeaseId lease = Exported(8);
  const std::set<SlabId> old = SlabsOf(importer, lease);
  Ask(importer, 1);  // the device is busy
  EXPECT_EQ(Outcome(exporter, Release(exporter, lease)), "released");
  EXPECT_EQ(Outcome(importer, Release(importer, lease)), "released");
  const uint64_t next = Ask(exporter, 8);
  RunDevice();
  ASSERT_EQ(Outcome(exporter, next), "granted");
  for (const SlabId slab :
       SlabsOf(exporter, {AnswerTo(exporter, next).grant().lease_id()})) {
    EXPECT_FALSE(old.contains(slab));
  }
}

TEST_F(MachineExportTest, ItsMemoryServesNobodyAfterACreateThatFailed) {
  const quota::LeaseId lease = Exported(8);
  const std::set<SlabId> old = SlabsOf(importer, lease);
  Ask(importer, 1);  // the device is busy
  EXPECT_EQ(Outcome(exporter, Release(exporter, lease)), "released");
  EXPECT_EQ(Outcome(importer, Release(importer, lease)), "released");
  // It needs the bytes of all that is kept, and gets none of them.
  SimClient* large = Connect("b");
  const uint64_t request = Ask(large, 63);
  world.StepDevice(kPool);
  world.device(kPool).FailNextCreate(absl::InternalError("broken"));
  RunDevice();
  EXPECT_EQ(Outcome(large, request), "DEVICE_ERROR");
  for (const SlabId slab : old) EXPECT_FALSE(world.IsAlive(kPool, slab));
}

TEST_F(MachineExportTest, ItStaysOnTheDeviceAndIsHard) {
  const quota::LeaseId other = Lease(exporter, 4);
  const quota::LeaseId lease = Exported(8);
  EXPECT_TRUE(IsHard(lease));
  EXPECT_FALSE(IsHard(other));
  Enter(exporter);
  EXPECT_EQ(Outcome(exporter, SetGate(exporter, false)), "gate set");
  EXPECT_EQ(Outcome(exporter, SetGate(exporter, true)), "gate set");
  Park(exporter);
  EXPECT_TRUE(IsHard(lease)) << "a gate that is turned on changes nothing";
  EXPECT_FALSE(IsHard(other));
  const auto reclaimed = Reclaim("a");
  Work();
  EXPECT_EQ(Where(other), "evicted");
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_EQ(Outcome(exporter, Export(other)), "BAD_STATE") << "it is away";
}

TEST_F(MachineExportTest, GuaranteesOfOthersComeFirst) {
  const quota::LeaseId lease = Lease(exporter, 8);
  SetTenant("owner", {.guarantee = 60});
  EXPECT_EQ(Outcome(exporter, Export(lease)), "OVERCOMMITTED");
  EXPECT_FALSE(IsHard(lease));
  EXPECT_EQ(Outcome(importer, AttachBy(importer, lease, kKey)),
            "NO_SUCH_LEASE");
  SetTenant("owner", {.guarantee = 50});
  EXPECT_EQ(Outcome(exporter, Export(lease)), "granted");
  EXPECT_TRUE(IsHard(lease));
}

TEST_F(MachineExportTest, OneThatWasToGoIsExportedUnderAPause) {
  SetTenant("owner", {.guarantee = 32});
  SimClient* busy = Active("a");
  const quota::LeaseId one = Lease(busy, 30);
  const quota::LeaseId two = Lease(busy, 30);
  SimClient* owner = Connect("owner");
  const uint64_t id = Ask(owner, 30, {.wait = seconds(60)});
  ASSERT_TRUE(GateOf(busy).paused());
  const bool first = *state().LeaseAt(one).awaits_pause;
  const quota::LeaseId wanted = first ? one : two;
  ASSERT_EQ(Outcome(busy, Export(busy, wanted, kKey)), "granted");
  Park(busy);
  RunFor(seconds(1));
  EXPECT_EQ(Where(wanted), "mapped");
  EXPECT_EQ(Where(first ? two : one), "evicted");
  EXPECT_EQ(Outcome(owner, id), "granted");
}

TEST_F(MachineExportTest, TheNextBrokerKnowsIt) {
  const quota::LeaseId lease = Exported(8);
  End(exporter);
  world.Die();
  EXPECT_EQ(world.not_adopted.size(), 0u);
  EXPECT_TRUE(IsHard(lease));
  SimClient* late = Parked("a");
  EXPECT_EQ(Outcome(late, AttachBy(late, lease, kOther)), "NO_SUCH_LEASE");
  EXPECT_EQ(Outcome(late, AttachBy(late, lease, kKey)), "attached");
  End(importer);
  EXPECT_EQ(Where(lease), "mapped");
  End(late);
  EXPECT_EQ(Where(lease), "gone");
}

}  // namespace
}  // namespace gmb::broker
