// Restores of sessions that share leases, step by step: the cases that random
// runs found.
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "ipc/gate_word.h"
#include "tests/broker/machine/machine_invariants.h"
#include "tests/broker/machine/sim_world.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kGranule = SimWorld::kGranule;

class MachineRestoreTest : public testing::Test {
 protected:
  MachineRestoreTest()
      : world({}, /*pools=*/1, 64 * kGranule,
              /*host_pool_bytes=*/64 * kGranule) {
    SetTenant("a", quota::Amount::Fraction(1));
    SetTenant("b", quota::Amount::Fraction(1));
  }

  void SetTenant(const std::string& name, quota::Amount limit,
                 quota::Amount guarantee = quota::Amount::Bytes(0)) {
    TenantPolicy policy;
    policy.name = name;
    policy.quota = {guarantee, limit, 1};
    world.Do("set tenant", [&](Turn& turn) {
      ASSERT_TRUE(world.machine().operators().SetTenant(policy, turn).ok());
    });
  }
  void RunDevice() {
    while (world.StepDevice(quota::PoolId{1})) {
    }
  }
  // Its gate is on, and parked.
  SimClient* ConnectParked(const std::string& tenant) {
    SimClient* client = world.Connect(tenant);
    client->cells->word.store(
        ipc::GateWord(ipc::GateState::kParked, 0, 1).bits());
    v1::ClientMessage message;
    message.mutable_set_gate()->set_on(true);
    Send(client, message);
    return client;
  }
  uint64_t Send(SimClient* client, v1::ClientMessage message) {
    message.set_request_id(++client->last_request);
    world.Send(client, message);
    return client->last_request;
  }
  // Leased and, with a name, sealed.
  uint64_t Lease(SimClient* client, uint64_t granules,
                 const std::string& name = "", bool keep = false) {
    v1::ClientMessage message;
    message.mutable_acquire()->set_bytes(granules * kGranule);
    message.mutable_acquire()->set_share_as(name);
    message.mutable_acquire()->set_keep(keep);
    client->acquires[client->last_request + 1] = message.acquire();
    Send(client, message);
    RunDevice();
    const uint64_t lease = client->leases.rbegin()->first;
    if (!name.empty()) {
      v1::ClientMessage seal;
      seal.mutable_seal()->set_lease_id(lease);
      Send(client, seal);
    }
    return lease;
  }
  void Attach(SimClient* client, const std::string& name) {
    v1::ClientMessage message;
    message.mutable_attach()->set_name(name);
    client->attaches[client->last_request + 1] = name;
    Send(client, message);
    ASSERT_EQ(client->attached, 1u);
  }
  uint64_t Restore(SimClient* client) {
    v1::ClientMessage message;
    message.mutable_restore()->mutable_wait()->set_seconds(10);
    client->restore = Send(client, message);
    return client->restore;
  }
  // All that tenant `a` has parked leaves the device, or so much of it.
  void EvictAll() {
    Evict(0);
    for (const auto& [id, lease] : *world.state().leases) {
      const bool its = lease->tenant == world.state().tenants->Find("a")->id;
      ASSERT_TRUE(!its || lease->move->residence == Residence::kEvicted);
    }
  }
  void Evict(uint64_t granules) {
    v1::ReclaimRequest request;
    request.set_tenant("a");
    request.set_bytes(granules * kGranule);
    world.Do("reclaim", [&](Turn& turn) {
      ASSERT_TRUE(world.machine()
                      .operators()
                      .StartReclaim(
                          request,
                          [](const absl::StatusOr<v1::ReclaimResponse>&) {},
                          turn)
                      .ok());
    });
    while (world.StepCopy(/*out=*/true, /*fail=*/false)) {
    }
    for (SimClient* client : world.clients()) Unmap(client);
    RunDevice();
  }
  void SetGate(SimClient* client, bool on, const std::string& group = "") {
    v1::ClientMessage message;
    message.mutable_set_gate()->set_on(on);
    message.mutable_set_gate()->set_group(group);
    Send(client, message);
  }
  void Unmap(SimClient* client) {
    for (; !client->moves.empty(); client->moves.pop_front()) {
      const v1::Evict& evict = client->moves.front().evict();
      world.HoldSlabs(client->leases.at(evict.lease_id()), false);
      v1::ClientMessage message;
      message.mutable_unmapped()->set_lease_id(evict.lease_id());
      message.mutable_unmapped()->set_move(evict.move());
      world.Send(client, message);
    }
  }

  SimWorld world;
};

// Each denial made the other ask, whose denial made the first one ask.
TEST_F(MachineRestoreTest, RestoresOfOneLeaseThatAreDeniedAtOnceAllEnd) {
  SimClient* writer = ConnectParked("a");
  Lease(writer, 20, "x");
  SimClient* reader = ConnectParked("a");
  Attach(reader, "x");
  EvictAll();
  SimClient* other = world.Connect("b");
  Lease(other, 60);
  Restore(writer);
  Restore(reader);
  ASSERT_EQ(world.state().engine->waiting(), 1u);
  SetTenant("a", quota::Amount::Bytes(5 * kGranule));
  EXPECT_EQ(writer->restore, 0u) << "it still waits";
  EXPECT_EQ(reader->restore, 0u) << "it still waits";
  EXPECT_EQ(world.state().engine->waiting(), 0u);
  EXPECT_EQ(world.problem(), "");
}

// The lease that it asked back was left meanwhile, and comes all the same.
TEST_F(MachineRestoreTest, RestoreIsAnsweredWhenItsLastEvictedLeaseWasLeft) {
  SimClient* writer = ConnectParked("a");
  const uint64_t lease = Lease(writer, 20, "x", /*keep=*/true);
  EvictAll();
  SimClient* other = world.Connect("b");
  const uint64_t blocking = Lease(other, 60);
  Restore(writer);
  v1::ClientMessage release;
  release.mutable_release()->set_lease_id(lease);
  writer->leases.erase(lease);
  Send(writer, release);
  v1::ClientMessage free;
  free.mutable_release()->set_lease_id(blocking);
  world.HoldSlabs(other->leases.at(blocking), false);
  other->leases.erase(blocking);
  Send(other, free);
  RunDevice();
  EXPECT_EQ(writer->restore, 0u) << "it still waits";
  EXPECT_EQ(world.problem(), "");
}

// A group's member was paused for a lease of another member, whose own gate was
// closed already. Then it left the group, and nobody is paused any more.
TEST_F(MachineRestoreTest, LeaseForgetsPauseOfOneWhoLeftTheGroup) {
  SetTenant("b", quota::Amount::Fraction(1),
            quota::Amount::Bytes(50 * kGranule));
  SimClient* holder = ConnectParked("a");
  Lease(holder, 20);
  Lease(holder, 20);
  Evict(20);
  ASSERT_TRUE(world.state().SessionAt(holder->session).gate->closed());
  SimClient* busy = ConnectParked("a");
  SetGate(busy, true, "g");
  SetGate(holder, true, "g");
  busy->cells->word.store(ipc::GateWord(ipc::GateState::kOpen, 1, 2).bits());
  SimClient* owner = world.Connect("b");
  v1::ClientMessage acquire;
  acquire.mutable_acquire()->set_bytes(50 * kGranule);
  acquire.mutable_acquire()->mutable_wait()->set_seconds(10);
  Send(owner, acquire);
  for (int i = 0; i < 10 && world.state().pausing->empty(); ++i)
    world.AdvanceToDue();
  ASSERT_TRUE(world.state().pausing->contains(busy->session));
  SetGate(busy, false);
  EXPECT_TRUE(world.state().pausing->empty());
  for (const auto& [id, lease] : *world.state().leases)
    EXPECT_FALSE(*lease->awaits_pause) << "lease " << id.value;
  EXPECT_EQ(world.problem(), "");
}

// It did not answer, so that the lease became hard; then it left, and the copy
// failed.
TEST_F(MachineRestoreTest, LeaseOfOneThatDidNotAnswerIsSoftAgainWhenItHasLeft) {
  SimClient* writer = ConnectParked("a");
  const quota::LeaseId lease{Lease(writer, 20, "x", /*keep=*/true)};
  v1::ReclaimRequest request;
  request.set_tenant("a");
  world.Do("reclaim", [&](Turn& turn) {
    ASSERT_TRUE(world.machine()
                    .operators()
                    .StartReclaim(
                        request,
                        [](const absl::StatusOr<v1::ReclaimResponse>&) {}, turn)
                    .ok());
  });
  world.Advance(std::chrono::seconds(3));
  ASSERT_TRUE(world.state().engine->Lease(lease)->hard);
  world.Close(writer, "gone");
  while (world.StepCopy(/*out=*/true, /*fail=*/true)) {
  }
  ASSERT_EQ(world.state().LeaseAt(lease).move->residence, Residence::kResident);
  EXPECT_FALSE(world.state().engine->Lease(lease)->hard);
}

}  // namespace
}  // namespace gmb::broker
