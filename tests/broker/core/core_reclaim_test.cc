// The core takes memory back and brings it back: what it does when clients,
// copies and devices answer late, wrongly, or not at all.
#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "ipc/gate_control.h"
#include "tests/broker/core/core_reclaim_fixture.h"
#include "tests/broker/core/killable_child.h"

namespace gmb::broker {
namespace {

using quota::Amount;

TEST_F(CoreReclaimTest, BytesAreGrantedOnceTheirHolderHasUnmapped) {
  const auto [idle, busy, request, evict] = Take(kPatience);
  ASSERT_EQ(evict.lease_id(), lease_);
  EXPECT_EQ(idle->Word().state(), ipc::GateState::kClosed);
  EXPECT_EQ(Lease(lease_).state(), v1::LeaseInfo::EVICTING);
  idle->Unmapped(lease_, evict.move());
  EXPECT_TRUE(busy->Answer(request).has_grant());
  EXPECT_EQ(Lease(lease_).state(), v1::LeaseInfo::EVICTED);
  EXPECT_EQ(Lease(lease_).slabs(), 0U);
}

TEST_F(CoreReclaimTest, AnswersToOtherMovesAreNone) {
  const auto [idle, busy, request, evict] = Take(kPatience);
  busy->Unmapped(lease_, evict.move());      // not its lease
  idle->Unmapped(lease_, evict.move() + 1);  // not asked
  idle->Unmapped(lease_ + 1, evict.move());
  idle->Mapped(lease_, evict.move());
  EXPECT_EQ(Lease(lease_).state(), v1::LeaseInfo::EVICTING);
  idle->Unmapped(lease_, evict.move());
  EXPECT_TRUE(busy->Answer(request).has_grant());
  // Said twice, as after a break: nothing more happens.
  idle->Unmapped(lease_, evict.move());
  EXPECT_EQ(Lease(lease_).state(), v1::LeaseInfo::EVICTED);
}

TEST_F(CoreReclaimTest, AFailedCopyLeavesContentsOnTheDevice) {
  faults_out.fail_call[static_cast<int>(device::CopyFaults::Op::kBegin)] = 1;
  const auto [idle, busy, request, evict] = Take(1);
  idle->Unmapped(lease_, evict.move());
  EXPECT_EQ(busy->Answer(request).error().detail().reason(),
            v1::POOL_EXHAUSTED);
  EXPECT_TRUE(AwaitLease(lease_, v1::LeaseInfo::MAPPED));
  EXPECT_GT(Lease(lease_).slabs(), 0U);
  // The scope that comes back maps the very slabs again, without a copy.
  const uint64_t restore = idle->Restore(kPatience);
  const v1::Map map = idle->AwaitMap(evict.move());
  EXPECT_EQ(map.lease_id(), lease_);
  idle->Mapped(lease_, map.move());
  EXPECT_TRUE(idle->Answer(restore).has_restored());
  EXPECT_EQ(idle->Word().state(), ipc::GateState::kParked);
  EXPECT_EQ(faults_in.calls[0], 0U);
}

TEST_F(CoreReclaimTest, AFailedRestoreIsAnAnswerAndKeepsTheContents) {
  const auto idle = Holder("idle", 14 * kMiB);
  idle->Park();
  const auto busy = Connect("busy");
  const uint64_t request = busy->Acquire(50 * kMiB, kPatience);
  const v1::Evict evict = idle->AwaitEvict();
  idle->Unmapped(lease_, evict.move());
  const v1::BrokerMessage grant = busy->Answer(request);
  ASSERT_TRUE(grant.has_grant());
  busy->Release(grant.grant().lease_id());
  faults_in.fail_call[static_cast<int>(device::CopyFaults::Op::kMap)] = 1;
  const uint64_t failing = idle->Restore(kPatience);
  const v1::Map map = idle->AwaitMap(evict.move());
  idle->Mapped(lease_, map.move());
  EXPECT_EQ(idle->Answer(failing).error().detail().reason(), v1::DEVICE_ERROR);
  // The memory it mapped is taken again; the copy in the host pool is the true
  // one.
  const v1::Evict again = idle->AwaitEvict(map.move());
  idle->Unmapped(lease_, again.move());
  ASSERT_TRUE(AwaitLease(lease_, v1::LeaseInfo::EVICTED));
  EXPECT_TRUE(Lease(lease_).backed());
  const uint64_t restore = idle->Restore(kPatience);
  const v1::Map second = idle->AwaitMap(again.move());
  idle->Mapped(lease_, second.move());
  EXPECT_TRUE(idle->Answer(restore).has_restored());
}

TEST_F(CoreReclaimTest, WhoDoesNotAnswerKeepsItsMemoryAndItCountsAsHard) {
  const auto idle = Holder("idle", 40 * kMiB);
  EXPECT_FALSE(Lease(lease_).hard());
  idle->Park();
  const auto busy = Connect("busy");
  const uint64_t request = busy->Acquire(40 * kMiB, 1);
  const v1::Evict evict = idle->AwaitEvict();
  EXPECT_EQ(busy->Answer(request).error().detail().reason(),
            v1::POOL_EXHAUSTED);
  EXPECT_TRUE(Lease(lease_).hard());
  // Late is better than never.
  const uint64_t another = busy->Acquire(40 * kMiB, kPatience);
  idle->Unmapped(lease_, evict.move());
  EXPECT_TRUE(busy->Answer(another).has_grant());
}

TEST_F(CoreReclaimTest, WhoMayBeTerminatedAndDoesNotAnswerIsKilled) {
  TenantPolicy policy = *core.GetPolicy("idle");
  policy.reclaim.may_terminate = true;
  ASSERT_TRUE(core.SetTenant(policy).ok());
  KillableChild child;
  const auto idle = Holder("idle", 40 * kMiB, child.Peer());
  idle->Park();
  const auto busy = Connect("busy");
  const uint64_t request = busy->Acquire(40 * kMiB, kPatience);
  idle->AwaitEvict();
  EXPECT_EQ(child.AwaitSignal(), SIGKILL);
  core.CloseSession(idle->session, "its process ended");  // the handle server's
  EXPECT_TRUE(busy->Answer(request).has_grant());
}

TEST_F(CoreReclaimTest, APauseEndsWithItsGraceAndKillsNobody) {
  SetTenant("owner", Amount::Bytes(20 * kMiB), Amount::Fraction(1));
  TenantPolicy policy = *core.GetPolicy("idle");
  // By the clock, which the test sets ahead.
  constexpr std::chrono::minutes kGrace{10};
  constexpr std::chrono::minutes kWait{15};
  policy.reclaim.pause_grace = kGrace;
  policy.reclaim.may_terminate = true;
  ASSERT_TRUE(core.SetTenant(policy).ok());
  const auto idle = Holder("idle", 40 * kMiB);
  idle->SetWord(ipc::GateWord(ipc::GateState::kOpen, 1, 1));  // in a scope
  const uint64_t above = idle->Acquire(14 * kMiB, 60);
  const auto owner = Connect("owner");
  const uint64_t request =
      owner->Acquire(20 * kMiB, std::chrono::seconds(kWait).count());
  EXPECT_TRUE(
      idle->Await([](const v1::BrokerMessage& m) { return m.has_pausing(); })
          .has_pausing());
  EXPECT_TRUE(idle->Word().paused());
  EXPECT_EQ(idle->Answer(above).error().detail().reason(), v1::PAUSING);
  const uint64_t wants_in = idle->Restore(3600);
  clock.Advance(kGrace);
  core.Tick();
  EXPECT_TRUE(idle->Answer(wants_in).has_restored());  // withdrawn
  EXPECT_FALSE(idle->Word().paused());
  clock.Advance(kWait - kGrace);
  core.Tick();
  EXPECT_TRUE(owner->Answer(request).has_error());
  EXPECT_EQ(Lease(lease_).state(), v1::LeaseInfo::MAPPED);
}

TEST_F(CoreReclaimTest, APausedSessionThatParksIsEvicted) {
  SetTenant("owner", Amount::Bytes(20 * kMiB), Amount::Fraction(1));
  const auto idle = Holder("idle", 40 * kMiB);
  idle->SetWord(ipc::GateWord(ipc::GateState::kOpen, 1, 1));
  const auto owner = Connect("owner");
  const uint64_t request = owner->Acquire(20 * kMiB, kPatience);
  idle->Await([](const v1::BrokerMessage& m) { return m.has_pausing(); });
  const uint64_t wants_in = idle->Restore(kPatience);
  idle->SetWord(ipc::GateWord(ipc::GateState::kParked, 0, 1, /*paused=*/true));
  const v1::Evict evict = idle->AwaitEvict();
  idle->Unmapped(lease_, evict.move());
  const v1::BrokerMessage grant = owner->Answer(request);
  ASSERT_TRUE(grant.has_grant());
  // And comes back as soon as there is room: it has asked already.
  owner->Release(grant.grant().lease_id());
  const v1::Map map = idle->AwaitMap(evict.move());
  idle->Mapped(lease_, map.move());
  EXPECT_TRUE(idle->Answer(wants_in).has_restored());
}

TEST_F(CoreReclaimTest, WhatIsNotAnsweredIsRepeatedOnANewStream) {
  const auto [idle, busy, request, evict] = Take(kPatience);
  {
    base::MutexLock lock(&idle->mu);
    idle->messages.clear();
  }
  ASSERT_TRUE(core.AttachStream(idle->session, idle).ok());
  EXPECT_EQ(idle->AwaitEvict().move(), evict.move());
  idle->Unmapped(lease_, evict.move());
  EXPECT_TRUE(busy->Answer(request).has_grant());
}

TEST_F(CoreReclaimTest, AGateThatGuaranteesRestOnCanNotBeTurnedOff) {
  SetTenant("owner", Amount::Bytes(20 * kMiB), Amount::Fraction(1));
  const auto idle = Holder("idle", 40 * kMiB);
  const v1::BrokerMessage refused = idle->Answer(idle->SetGate(false));
  EXPECT_EQ(refused.error().detail().reason(), v1::OVERCOMMITTED);
  EXPECT_FALSE(Lease(lease_).hard());
  idle->Release(lease_);
  EXPECT_TRUE(idle->Answer(idle->SetGate(false)).has_gate_set());
}

TEST_F(CoreReclaimTest, WhoIsOvercommittedWithoutAGateIsToldThatItWouldHelp) {
  SetTenant("owner", Amount::Bytes(20 * kMiB), Amount::Fraction(1));
  const auto idle = Connect("idle");
  const auto acquire = [&](v1::Contents contents) {
    v1::ClientMessage message;
    message.mutable_acquire()->set_bytes(40 * kMiB);
    message.mutable_acquire()->set_contents(contents);
    return idle->Answer(idle->Send(message));
  };
  const auto helps = [](const v1::BrokerMessage& answer) {
    EXPECT_EQ(answer.error().detail().reason(), v1::OVERCOMMITTED);
    return answer.error().message().find("turn the gate on") !=
           std::string::npos;
  };
  EXPECT_TRUE(helps(acquire(v1::PRESERVE)));
  EXPECT_TRUE(helps(acquire(v1::DISCARD)));
  EXPECT_FALSE(helps(acquire(v1::RESIDENT))) << "it would not";
  EXPECT_TRUE(idle->Answer(idle->SetGate(true)).has_gate_set());
  EXPECT_FALSE(helps(acquire(v1::RESIDENT))) << "it is on";
  EXPECT_TRUE(acquire(v1::PRESERVE).has_grant());
  // Nor where there is no room for its contents.
  const auto other = Connect("busy");
  TenantPolicy policy = *core.GetPolicy("busy");
  policy.reclaim.host_limit = Amount::Bytes(2 * kMiB);
  ASSERT_TRUE(core.SetTenant(policy).ok());
  EXPECT_FALSE(helps(other->Answer(other->Acquire(40 * kMiB))));
}

TEST_F(CoreReclaimTest, AGateWrittenOverFailsItsOwnRestoreAlone) {
  const auto [idle, busy, request, evict] = Take(kPatience);
  idle->SetWord(ipc::GateWord(0xDEADBEEFDEADBEEF));
  idle->Unmapped(lease_, evict.move());
  const v1::BrokerMessage grant = busy->Answer(request);
  ASSERT_TRUE(grant.has_grant());
  busy->Release(grant.grant().lease_id());
  const uint64_t restore = idle->Restore(kPatience);
  const v1::Map map = idle->AwaitMap(evict.move());
  idle->Mapped(lease_, map.move());
  EXPECT_EQ(idle->Answer(restore).error().detail().reason(), v1::BAD_STATE);
}

TEST_F(CoreReclaimTest, ALeaseReleasedWhileItLeavesIsGone) {
  const auto [idle, busy, request, evict] = Take(kPatience);
  EXPECT_TRUE(idle->Answer(idle->Release(lease_)).has_released());
  EXPECT_TRUE(busy->Answer(request).has_grant());
  EXPECT_EQ(core.Status().host_pool().reserved_bytes(), 0U);
  EXPECT_TRUE(idle->Answer(idle->Restore(kPatience)).has_restored());
}

TEST_F(CoreReclaimTest, ASessionThatEndsWhileItLeavesLeavesNothing) {
  const auto [idle, busy, request, evict] = Take(kPatience);
  core.CloseSession(idle->session, "killed");
  EXPECT_TRUE(busy->Answer(request).has_grant());
  EXPECT_EQ(core.Status().host_pool().reserved_bytes(), 0U);
  EXPECT_EQ(core.Status().leases(), 1U);
}

TEST_F(CoreReclaimTest, AGroupIsClosedAndRestoredTogetherOrNotAtAll) {
  const auto first = Holder("idle", 20 * kMiB);
  const uint64_t of_first = lease_;
  const auto second = Holder("idle", 20 * kMiB);
  const uint64_t of_second = lease_;
  for (const auto& peer : {first, second}) {
    v1::ClientMessage message;
    message.mutable_set_gate()->set_on(true);
    message.mutable_set_gate()->set_group("ranks");
    ASSERT_TRUE(peer->Answer(peer->Send(message)).has_gate_set());
  }
  first->Park();  // the second one works on
  const auto busy = Connect("busy");
  EXPECT_TRUE(busy->Answer(busy->Acquire(20 * kMiB, 1)).has_error());
  EXPECT_EQ(first->Word().state(), ipc::GateState::kParked);
  second->Park();
  const uint64_t request = busy->Acquire(20 * kMiB, kPatience);
  // One lease is enough for it, and both gates are closed.
  const auto victim =
      AwaitLease(of_first, v1::LeaseInfo::EVICTING) ? first : second;
  const uint64_t taken = victim == first ? of_first : of_second;
  EXPECT_EQ(first->Word().state(), ipc::GateState::kClosed);
  EXPECT_EQ(second->Word().state(), ipc::GateState::kClosed);
  const v1::Evict evict = victim->AwaitEvict();
  victim->Unmapped(taken, evict.move());
  const v1::BrokerMessage grant = busy->Answer(request);
  ASSERT_TRUE(grant.has_grant());
  // The other one wants in: all of the group comes back first.
  const auto other = victim == first ? second : first;
  const uint64_t restore = other->Restore(kPatience);
  busy->Release(grant.grant().lease_id());
  const v1::Map map = victim->AwaitMap(evict.move());
  EXPECT_EQ(other->Word().state(), ipc::GateState::kClosed);
  victim->Mapped(taken, map.move());
  EXPECT_TRUE(other->Answer(restore).has_restored());
  EXPECT_EQ(first->Word().state(), ipc::GateState::kParked);
  EXPECT_EQ(second->Word().state(), ipc::GateState::kParked);
}

// Nobody may count on what cannot be taken: that is hard meanwhile.
TEST_F(CoreReclaimTest, AMemberThatIsOffKeepsItsGroup) {
  const auto first = Holder("idle", 20 * kMiB);
  const uint64_t of_first = lease_;
  const auto second = Holder("idle", 20 * kMiB);
  const auto set = [](FakePeer& peer, bool on) {
    v1::ClientMessage message;
    message.mutable_set_gate()->set_on(on);
    message.mutable_set_gate()->set_group("ranks");
    return peer.Answer(peer.Send(message)).has_gate_set();
  };
  ASSERT_TRUE(set(*first, true));
  first->Park();
  second->Park();
  EXPECT_FALSE(Lease(of_first).hard());
  ASSERT_TRUE(set(*second, false));
  EXPECT_TRUE(Lease(of_first).hard());
  const auto busy = Connect("busy");  // 12 MiB are free
  EXPECT_TRUE(busy->Answer(busy->SetGate(true)).has_gate_set());
  EXPECT_TRUE(busy->Answer(busy->Acquire(20 * kMiB, 1)).has_error())
      << "as a borrower, to which the sums say nothing";
  EXPECT_EQ(first->Word().state(), ipc::GateState::kParked);
  ASSERT_TRUE(set(*second, true));
  EXPECT_FALSE(Lease(of_first).hard());
  ASSERT_TRUE(set(*second, false));
  EXPECT_TRUE(Lease(of_first).hard());
  core.CloseSession(second->session, "killed");
  EXPECT_FALSE(Lease(of_first).hard());
  const uint64_t request = busy->Acquire(40 * kMiB, kPatience);
  first->Unmapped(of_first, first->AwaitEvict().move());
  EXPECT_TRUE(busy->Answer(request).has_grant()) << "now it is lent";
}

TEST_F(CoreReclaimTest, NobodyKeepsAGroupThatGuaranteesRestOn) {
  SetTenant("owner", Amount::Bytes(20 * kMiB), Amount::Fraction(1));
  const auto first = Holder("idle", 40 * kMiB);
  const uint64_t of_first = lease_;
  v1::ClientMessage message;
  message.mutable_set_gate()->set_group("ranks");
  message.mutable_set_gate()->set_on(true);
  ASSERT_TRUE(first->Answer(first->Send(message)).has_gate_set());
  first->Park();
  const auto second = Connect("idle");
  message.mutable_set_gate()->set_on(false);
  EXPECT_EQ(second->Answer(second->Send(message)).error().detail().reason(),
            v1::OVERCOMMITTED);
  const auto owner = Connect("owner");
  const uint64_t request = owner->Acquire(20 * kMiB, kPatience);
  first->Unmapped(of_first, first->AwaitEvict().move());
  EXPECT_TRUE(owner->Answer(request).has_grant());
}

TEST_F(CoreReclaimTest, AGroupWhoseMemberDiesGoesOn) {
  const auto first = Holder("idle", 20 * kMiB);
  const auto second = Holder("idle", 20 * kMiB);
  for (const auto& peer : {first, second}) {
    v1::ClientMessage message;
    message.mutable_set_gate()->set_on(true);
    message.mutable_set_gate()->set_group("ranks");
    ASSERT_TRUE(peer->Answer(peer->Send(message)).has_gate_set());
    peer->Park();
  }
  const auto busy = Connect("busy");
  const uint64_t request = busy->Acquire(20 * kMiB, kPatience);
  (void)first->AwaitEvict();
  const v1::Evict evict = second->AwaitEvict();
  const uint64_t restore = second->Restore(kPatience);
  core.CloseSession(first->session, "killed");
  second->Unmapped(lease_, evict.move());
  second->Mapped(lease_, second->AwaitMap(evict.move()).move());
  EXPECT_TRUE(second->Answer(restore).has_restored());
  EXPECT_EQ(second->Word().state(), ipc::GateState::kParked);
  EXPECT_TRUE(busy->Answer(request).has_grant());
}

TEST_F(CoreReclaimTest, AGroupsNameIsChecked) {
  const auto idle = Holder("idle", 2 * kMiB);
  v1::ClientMessage message;
  message.mutable_set_gate()->set_on(true);
  for (const std::string& name : {std::string(64, 'x'), std::string("a\nb")}) {
    message.mutable_set_gate()->set_group(name);
    EXPECT_EQ(idle->Answer(idle->Send(message)).error().detail().reason(),
              v1::BAD_REQUEST);
  }
}

TEST_F(CoreReclaimTest, AnEndlessRequestForTheHostPoolIsHard) {
  // 512 MiB of room: what does not fit can not be taken by force.
  const auto idle = Holder("idle", 50 * kMiB);
  TenantPolicy policy = *core.GetPolicy("busy");
  policy.reclaim.host_limit = Amount::Bytes(2 * kMiB);
  ASSERT_TRUE(core.SetTenant(policy).ok());
  idle->Release(lease_);
  const auto busy = Holder("busy", 20 * kMiB);
  EXPECT_TRUE(Lease(lease_).hard());
  EXPECT_EQ(core.TenantReport("busy")->host_reserved_bytes(), 0U);
}

}  // namespace
}  // namespace gmb::broker
