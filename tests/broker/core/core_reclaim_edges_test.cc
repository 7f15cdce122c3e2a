// Reclaim where two things meet: pauses, groups, gates being switched, restores
// that fail half way.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ipc/gate_control.h"
#include "proto/error_status.h"
#include "tests/broker/core/core_reclaim_fixture.h"

namespace gmb::broker {
namespace {

using device::CopyFaults;
using quota::Amount;

class CoreReclaimEdgesTest : public CoreReclaimTest {
 protected:
  explicit CoreReclaimEdgesTest(
      const MachineOptions& options = ReclaimOptions())
      : CoreReclaimTest(options) {}

  static void Join(FakePeer* peer) {
    v1::ClientMessage message;
    message.mutable_set_gate()->set_on(true);
    message.mutable_set_gate()->set_group("ranks");
    ASSERT_TRUE(peer->Answer(peer->Send(message)).has_gate_set());
  }
  static void EnterScope(FakePeer* peer) {
    peer->SetWord(ipc::GateWord(ipc::GateState::kOpen, 1, 1));
  }
  static void RefuseToUnmap(FakePeer* peer, const v1::Evict& evict,
                            const std::string& why = "it will not") {
    v1::ClientMessage message;
    message.mutable_unmapped()->set_lease_id(evict.lease_id());
    message.mutable_unmapped()->set_move(evict.move());
    message.mutable_unmapped()->mutable_error()->set_code(13);
    message.mutable_unmapped()->mutable_error()->set_message(why);
    peer->Send(message);
  }
  // Takes `holder`'s parked lease for a request of `busy`, which is answered.
  v1::Evict Evict(FakePeer* holder, FakePeer* busy, uint64_t bytes,
                  uint64_t* granted) {
    const uint64_t request = busy->Acquire(bytes, kPatience);
    const v1::Evict evict = holder->AwaitEvict();
    holder->Unmapped(evict.lease_id(), evict.move());
    const v1::BrokerMessage grant = busy->Answer(request);
    EXPECT_TRUE(grant.has_grant()) << grant.ShortDebugString();
    *granted = grant.grant().lease_id();
    return evict;
  }
  // The first of a group, whose 20 MiB are away; `busy` has their place, as
  // `taken`.
  struct Away {
    std::shared_ptr<FakePeer> first;
    std::shared_ptr<FakePeer> busy;
    v1::Evict evict;
    uint64_t taken = 0;
  };
  Away FirstAway() {
    Away away;
    away.first = Holder("idle", 20 * kMiB);
    Join(away.first.get());
    away.first->Park();
    away.busy = Connect("busy");
    away.evict =
        Evict(away.first.get(), away.busy.get(), 40 * kMiB, &away.taken);
    return away;
  }
  static uint64_t Calls(const CopyFaults& faults, CopyFaults::Op op) {
    return faults.calls[static_cast<int>(op)];
  }
};

TEST_F(CoreReclaimEdgesTest, APauseOfAGroupLeavesItsClosedMembersAlone) {
  const auto [first, busy, evict, taken] = FirstAway();
  busy->Release(taken);
  const auto second = Holder("idle", 14 * kMiB);
  Join(second.get());
  EnterScope(second.get());
  const uint64_t of_second = lease_;
  const v1::BrokerMessage kept =
      busy->Answer(busy->Acquire(22 * kMiB, kPatience));
  ASSERT_TRUE(kept.has_grant()) << kept.ShortDebugString();
  const uint64_t restore = first->Restore(30);  // 86 MiB are free
  SetTenant("owner", Amount::Bytes(20 * kMiB), Amount::Fraction(1));
  const auto owner = Connect("owner");
  const uint64_t request = owner->Acquire(20 * kMiB, kPatience);
  EXPECT_TRUE(
      second->Await([](const v1::BrokerMessage& m) { return m.has_pausing(); })
          .has_pausing());
  second->SetWord(
      ipc::GateWord(ipc::GateState::kParked, 0, 1, /*paused=*/true));
  const v1::Evict of_pause = second->AwaitEvict();
  EXPECT_EQ(of_pause.lease_id(), of_second);
  second->Unmapped(of_second, of_pause.move());
  const v1::BrokerMessage grant = owner->Answer(request);
  ASSERT_TRUE(grant.has_grant());
  // Both come back, for the one who has asked.
  owner->Release(grant.grant().lease_id());
  busy->Release(kept.grant().lease_id());
  first->Mapped(evict.lease_id(), first->AwaitMap(evict.move()).move());
  second->Mapped(of_second, second->AwaitMap(of_pause.move()).move());
  EXPECT_TRUE(first->Answer(restore).has_restored());
  EXPECT_EQ(second->Word().state(), ipc::GateState::kParked);
}

TEST_F(CoreReclaimEdgesTest, AClientsWordsCannotSteerAnOperatorsTerminal) {
  std::promise<std::string> said;
  bool failed = false;
  const uint64_t subscription = events.Subscribe([&](const v1::Event& event) {
    if (event.kind() != "evict_failed" || std::exchange(failed, true)) return;
    said.set_value(event.message());
  });
  const auto idle = Holder("idle", 40 * kMiB);
  idle->Park();
  const auto busy = Connect("busy");
  busy->Acquire(40 * kMiB, kPatience);
  RefuseToUnmap(idle.get(), idle->AwaitEvict(), "\x1b[2J\nbusy");
  EXPECT_EQ(said.get_future().get(), " [2J busy");
  events.Unsubscribe(subscription);
}

TEST_F(CoreReclaimEdgesTest, APauseForAGuaranteeEndsWhenOnlyABorrowerIsLeft) {
  SetTenant("owner", Amount::Bytes(20 * kMiB), Amount::Fraction(1));
  TenantPolicy policy = *core.GetPolicy("idle");
  policy.reclaim.pause_grace = std::chrono::minutes(10);
  ASSERT_TRUE(core.SetTenant(policy).ok());
  const auto idle = Holder("idle", 40 * kMiB);
  EnterScope(idle.get());
  const auto busy = Connect("busy");
  const uint64_t borrows = busy->Acquire(20 * kMiB, 120);
  const auto owner = Connect("owner");
  const uint64_t request = owner->Acquire(20 * kMiB, 120);
  EXPECT_TRUE(
      idle->Await([](const v1::BrokerMessage& m) { return m.has_pausing(); })
          .has_pausing());
  const uint64_t wants_in = idle->Restore(kPatience);
  v1::ClientMessage cancel;
  cancel.mutable_cancel()->set_acquire_request_id(request);
  owner->Send(cancel);
  EXPECT_TRUE(idle->Answer(wants_in).has_restored());
  EXPECT_FALSE(idle->Word().paused());
  EXPECT_EQ(Lease(lease_).state(), v1::LeaseInfo::MAPPED);
  // The borrower gets it as borrowers do: once it is parked.
  idle->Park();
  const v1::Evict evict = idle->AwaitEvict();
  idle->Unmapped(lease_, evict.move());
  EXPECT_TRUE(busy->Answer(borrows).has_grant());
}

TEST_F(CoreReclaimEdgesTest, AHalfFilledLeaseIsFilledBeforeItsGateOpens) {
  const auto idle = Holder("idle", 14 * kMiB);
  const uint64_t lease = lease_;
  idle->Park();
  const auto busy = Connect("busy");
  uint64_t taken = 0;
  const v1::Evict evict = Evict(idle.get(), busy.get(), 50 * kMiB, &taken);
  busy->Release(taken);
  faults_in.fail_call[static_cast<int>(CopyFaults::Op::kMap)] = 1;
  const uint64_t failing = idle->Restore(kPatience);
  const v1::Map map = idle->AwaitMap(evict.move());
  idle->Mapped(lease, map.move());
  EXPECT_TRUE(idle->Answer(failing).has_error());
  RefuseToUnmap(idle.get(), idle->AwaitEvict(map.move()));
  ASSERT_TRUE(AwaitLease(lease, v1::LeaseInfo::MAPPED));
  EXPECT_EQ(idle->Word().state(), ipc::GateState::kClosed);
  const uint64_t copied = Calls(faults_in, CopyFaults::Op::kBegin);
  EXPECT_TRUE(idle->Answer(idle->Restore(kPatience)).has_restored());
  EXPECT_GT(Calls(faults_in, CopyFaults::Op::kBegin), copied);
  EXPECT_EQ(idle->Word().state(), ipc::GateState::kParked);
}

TEST_F(CoreReclaimEdgesTest, WhatWaitsSoftIsCheckedAnewWhenItsGateIsOff) {
  SetTenant("owner", Amount::Bytes(20 * kMiB), Amount::Fraction(1));
  const auto hog = Connect("busy");
  const v1::BrokerMessage held = hog->Answer(hog->Acquire(30 * kMiB));
  ASSERT_TRUE(held.has_grant());
  const auto idle = Connect("idle");
  ASSERT_TRUE(idle->Answer(idle->SetGate(true)).has_gate_set());
  const uint64_t fits = idle->Acquire(24 * kMiB, kPatience);
  const uint64_t above = idle->Acquire(34 * kMiB, 2);
  ASSERT_TRUE(idle->Answer(idle->SetGate(false)).has_gate_set());
  hog->Release(held.grant().lease_id());
  const v1::BrokerMessage granted = idle->Answer(fits);
  ASSERT_TRUE(granted.has_grant()) << granted.ShortDebugString();
  EXPECT_TRUE(Lease(granted.grant().lease_id()).hard());
  idle->Release(granted.grant().lease_id());
  // Nobody could take it back, and 20 MiB are promised to `owner`.
  EXPECT_TRUE(idle->Answer(above).has_error());
}

TEST_F(CoreReclaimEdgesTest, AGateIsNotTurnedOffWhileItsMemoryIsAway) {
  const auto [idle, busy, request, evict] = Take(kPatience);
  EXPECT_EQ(idle->Answer(idle->SetGate(false)).error().detail().reason(),
            v1::BAD_STATE);
  idle->Unmapped(lease_, evict.move());
  EXPECT_TRUE(busy->Answer(request).has_grant());
  EXPECT_EQ(idle->Answer(idle->SetGate(false)).error().detail().reason(),
            v1::BAD_STATE);
}

TEST_F(CoreReclaimEdgesTest, WhoLeavesAGroupTakesNoRestoreOfOthersAlong) {
  const auto [first, busy, evict, taken] = FirstAway();
  const auto second = Holder("idle", 2 * kMiB);
  Join(second.get());
  EnterScope(second.get());
  const uint64_t alone = second->Restore(60);  // asks for the group's memory
  const uint64_t own = first->Restore(30);
  ASSERT_TRUE(second->Answer(second->SetGate(false)).has_gate_set());
  EXPECT_TRUE(second->Answer(alone).has_restored()) << "it has all it holds";
  busy->Release(taken);
  const v1::Map map = first->AwaitMap(evict.move());
  ASSERT_EQ(map.lease_id(), evict.lease_id());
  first->Mapped(map.lease_id(), map.move());
  EXPECT_TRUE(first->Answer(own).has_restored());
}

TEST_F(CoreReclaimEdgesTest, EveryRestoreEndsAtItsOwnDeadline) {
  const auto [first, busy, evict, taken] = FirstAway();
  const auto second = Holder("idle", 2 * kMiB);
  Join(second.get());
  const uint64_t patient = first->Restore(60);
  EXPECT_EQ(second->Answer(second->Restore(1)).error().detail().reason(),
            v1::POOL_EXHAUSTED);
  busy->Release(taken);
  first->Mapped(evict.lease_id(), first->AwaitMap(evict.move()).move());
  EXPECT_TRUE(first->Answer(patient).has_restored());
}

TEST_F(CoreReclaimEdgesTest, WhomTheBrokerCanNotKillCountsAsHard) {
  TenantPolicy policy = *core.GetPolicy("idle");
  policy.reclaim.may_terminate = true;
  ASSERT_TRUE(core.SetTenant(policy).ok());
  const auto [idle, busy, request, evict] = Take(1);  // it has no pidfd
  EXPECT_TRUE(busy->Answer(request).has_error());
  EXPECT_TRUE(Lease(lease_).hard());
  idle->Unmapped(lease_, evict.move());  // late is better than never
  EXPECT_TRUE(busy->Answer(busy->Acquire(40 * kMiB, kPatience)).has_grant());
}

TEST_F(CoreReclaimEdgesTest, ADeletedTenantsReclaimIsAnswered) {
  SetTenant("gone", Amount::Bytes(0), Amount::Fraction(1));
  v1::ReclaimRequest request;
  request.set_tenant("gone");
  request.set_bytes(kMiB);
  request.mutable_wait()->set_seconds(60);
  std::promise<absl::Status> answered;
  ASSERT_TRUE(core.StartReclaim(request,
                                [&](absl::StatusOr<v1::ReclaimResponse> done) {
                                  answered.set_value(done.status());
                                })
                  .ok());
  ASSERT_TRUE(core.DeleteTenant("gone").ok());
  EXPECT_TRUE(answered.get_future().get().ok());
}

TEST_F(CoreReclaimEdgesTest, AReclaimThatIsRefusedIsNeitherToldNorAnswered) {
  std::vector<std::string> told;
  std::promise<void> asked;
  const uint64_t subscription = events.Subscribe([&](const v1::Event& event) {
    if (event.kind() != "reclaim_asked") return;
    told.push_back(event.tenant());
    if (event.tenant() == "busy") asked.set_value();
  });
  v1::ReclaimRequest request;
  const auto refuse = [&] {
    return core.StartReclaim(request, [](const auto& /*done*/) {
      ADD_FAILURE() << "a refused reclaim was answered as well";
    });
  };
  const auto reason = [](const absl::Status& status) {
    return proto::ToWireError(status).detail().reason();
  };
  request.set_tenant("nobody");
  EXPECT_EQ(reason(refuse()), v1::NO_SUCH_TENANT);
  request.set_tenant("idle");
  request.set_device("host-7");
  EXPECT_EQ(reason(refuse()), v1::NO_SUCH_DEVICE);
  request.clear_device();
  request.set_to(static_cast<v1::ReclaimRequest::Step>(77));
  EXPECT_EQ(reason(refuse()), v1::BAD_REQUEST);
  request.set_to(v1::ReclaimRequest::EVICT);
  request.set_tenant("busy");
  EXPECT_TRUE(core.StartReclaim(request, [](const auto& /*done*/) {}).ok());
  asked.get_future().wait();
  core.RefuseWaiting();
  EXPECT_EQ(reason(refuse()), v1::DRAINING);
  events.Unsubscribe(subscription);
  EXPECT_EQ(told, std::vector<std::string>{"busy"});
}

MachineOptions PatientOptions() {
  MachineOptions options = ReclaimOptions();
  options.planner.unmap_grace = std::chrono::minutes(1);
  return options;
}

class CorePatientEdgesTest : public CoreReclaimEdgesTest {
 protected:
  CorePatientEdgesTest() : CoreReclaimEdgesTest(PatientOptions()) {}
};

TEST_F(CorePatientEdgesTest, TheTickerRestsWhileHalfOfWhatLeavesIsThere) {
  const auto idle = Holder("idle", 20 * kMiB);
  const uint64_t first = lease_;
  ASSERT_TRUE(idle->Answer(idle->Acquire(20 * kMiB, kPatience)).has_grant());
  idle->Park();
  const auto busy = Connect("busy");
  const uint64_t request = busy->Acquire(40 * kMiB, 60);
  const auto evict_of = [&](bool of_first) {
    return idle
        ->Await([&](const v1::BrokerMessage& m) {
          return m.has_evict() && (m.evict().lease_id() == first) == of_first;
        })
        .evict();
  };
  idle->Unmapped(first, evict_of(true).move());
  ASSERT_TRUE(AwaitLease(first, v1::LeaseInfo::EVICTED));
  // Its slabs are kept for the request, although their time is over.
  const v1::Evict second = evict_of(false);
  for (int i = 0; i < 3; ++i) EXPECT_GT(core.Tick(), clock.Now());
  idle->Unmapped(second.lease_id(), second.move());
  EXPECT_TRUE(busy->Answer(request).has_grant());
}

TEST_F(CorePatientEdgesTest, AShrinkingPoolGivesBackWhatIsThereAndAddsUp) {
  const auto first = Holder("idle", 20 * kMiB);
  const uint64_t of_first = lease_;
  const auto second = Holder("idle", 20 * kMiB);
  first->Park();
  second->Park();
  const auto resized = core.ResizePool("host-0", Amount::Bytes(16 * kMiB));
  ASSERT_TRUE(resized.ok()) << resized.status();
  EXPECT_EQ(resized->state(), v1::Change::PENDING);
  const v1::Evict evict = first->AwaitEvict();
  const v1::Evict other = second->AwaitEvict();
  CheckSums();
  first->Unmapped(of_first, evict.move());
  // The other one is still on its way out: nobody waits for these bytes.
  EXPECT_TRUE(AwaitPool([](const v1::PoolStatus& pool) {
    return pool.capacity_bytes() == 20 * kMiB && pool.returned_bytes() == 0;
  })) << Pool().ShortDebugString();
  EXPECT_EQ(Lease(other.lease_id()).state(), v1::LeaseInfo::EVICTING);
  second->Unmapped(other.lease_id(), other.move());
  EXPECT_TRUE(AwaitPool([](const v1::PoolStatus& pool) {
    return pool.capacity_bytes() == 16 * kMiB;
  }));
}

MachineOptions BackingOptions() {
  MachineOptions options = ReclaimOptions();
  options.backing.bytes_per_second = 8 * kMiB;
  options.backing.burst_bytes = 14 * kMiB;
  options.backing.idle_for = {};
  return options;
}

// With copies made ahead of need, slowly.
class CoreBackingEdgesTest : public CoreReclaimEdgesTest {
 protected:
  CoreBackingEdgesTest() : CoreReclaimEdgesTest(BackingOptions()) {}
};

TEST_F(CoreBackingEdgesTest, AGateTurnedOffForgetsWhatWasBacked) {
  const auto idle = Holder("idle", 40 * kMiB);
  const uint64_t slabs = Lease(lease_).slabs();
  idle->Park();
  const auto backed = [&] {
    v1::ListSessionsRequest request;
    request.set_tenant("idle");
    return core.Sessions(request)->sessions(0).backed_bytes();
  };
  ASSERT_TRUE(AwaitPool([&](const v1::PoolStatus&) { return backed() > 0; }));
  ASSERT_LT(backed(), 40 * kMiB) << "too fast to see it half done";
  ASSERT_TRUE(idle->Answer(idle->SetGate(false)).has_gate_set());
  EXPECT_TRUE(AwaitPool([&](const v1::PoolStatus&) { return backed() == 0; }));
  EXPECT_TRUE(AwaitPool([&](const v1::PoolStatus&) {
    return core.Status().host_pool().reserved_bytes() == 0;
  }));
  // The next copy is of all of it, to a place of its own.
  ASSERT_TRUE(idle->Answer(idle->SetGate(true)).has_gate_set());
  const uint64_t before = Calls(faults_out, CopyFaults::Op::kMap);
  const auto busy = Connect("busy");
  uint64_t taken = 0;
  (void)Evict(idle.get(), busy.get(), 40 * kMiB, &taken);
  EXPECT_GE(Calls(faults_out, CopyFaults::Op::kMap) - before, slabs);
}

}  // namespace
}  // namespace gmb::broker
