// Shared leases: names, who attaches, how they leave and come back.
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ipc/gate_control.h"
#include "tests/broker/core/core_shared_fixture.h"

namespace gmb::broker {
namespace {

using quota::Amount;

TEST_F(CoreSharedTest, TheNameIsTakenFromTheAcquireOnAndOpenOnceItIsSealed) {
  const auto writer = Connect("idle");
  const v1::BrokerMessage grant =
      writer->Answer(Acquire(writer.get(), "weights", 10 * kMiB));
  ASSERT_TRUE(grant.has_grant());
  const auto reader = Connect("idle");
  EXPECT_EQ(Reason(reader->Answer(Acquire(reader.get(), "weights", 10 * kMiB))),
            v1::NAME_TAKEN);
  EXPECT_EQ(Reason(reader->Answer(Attach(reader.get(), "weights", 0))),
            v1::BAD_STATE);
  const uint64_t waiting = Attach(reader.get(), "weights", 30);
  EXPECT_TRUE(reader
                  ->Await([&](const v1::BrokerMessage& message) {
                    return message.request_id() == waiting &&
                           message.has_waiting();
                  })
                  .has_waiting());
  ASSERT_TRUE(Seal(writer.get(), grant.grant().lease_id()).has_sealed());
  const v1::BrokerMessage attached = reader->Answer(waiting);
  ASSERT_TRUE(attached.has_grant()) << attached.ShortDebugString();
  EXPECT_EQ(attached.grant().lease_id(), grant.grant().lease_id());
  EXPECT_EQ(attached.grant().bytes(), grant.grant().bytes());
  EXPECT_TRUE(attached.grant().attached());
  {
    base::MutexLock lock(&reader->mu);
    ASSERT_EQ(reader->frames.size(), 1u);
    EXPECT_EQ(reader->frames[0].request_id(), waiting);
    EXPECT_EQ(reader->frames[0].lease_id(), grant.grant().lease_id());
    EXPECT_EQ(reader->fds_sent, attached.grant().slabs());
  }
  EXPECT_EQ(Pool().granted_bytes(), 10 * kMiB);  // charged once
  const v1::LeaseInfo info = Lease(grant.grant().lease_id());
  EXPECT_EQ(info.share_name(), "weights");
  EXPECT_EQ(info.attached(), 2u);
  EXPECT_EQ(Reason(reader->Answer(Attach(reader.get(), "weights", kPatience))),
            v1::BAD_STATE);
  EXPECT_EQ(Reason(Seal(reader.get(), grant.grant().lease_id())),
            v1::BAD_STATE);
}

TEST_F(CoreSharedTest, ANameIsTheTenantsOwn) {
  const auto writer = Writer(10 * kMiB);
  const auto other = Connect("busy");
  EXPECT_EQ(Reason(other->Answer(Attach(other.get(), "weights", 1))),
            v1::NO_SUCH_LEASE);
  EXPECT_EQ(Reason(Drop(other.get(), "weights")), v1::NO_SUCH_LEASE);
  EXPECT_TRUE(
      other->Answer(Acquire(other.get(), "weights", 4 * kMiB)).has_grant());
}

TEST_F(CoreSharedTest, BadNamesAndContentsAreRefused) {
  const auto peer = Connect("idle");
  const std::vector<std::string> bad = {std::string(129, 'x'), "a\nb"};
  for (const std::string& name : bad) {
    EXPECT_EQ(Reason(peer->Answer(Acquire(peer.get(), name, kMiB))),
              v1::BAD_REQUEST);
  }
  v1::ClientMessage message;
  message.mutable_acquire()->set_bytes(kMiB);
  message.mutable_acquire()->set_keep(true);
  EXPECT_EQ(Reason(peer->Answer(peer->Send(message))), v1::BAD_REQUEST);
  message.mutable_acquire()->set_share_as("x");
  message.mutable_acquire()->set_contents(v1::DISCARD);
  EXPECT_EQ(Reason(peer->Answer(peer->Send(message))), v1::BAD_REQUEST);
  EXPECT_EQ(Reason(peer->Answer(Attach(peer.get(), "", 1))), v1::NO_SUCH_LEASE);
  // One that was denied leaves no name behind.
  EXPECT_TRUE(peer->Answer(Acquire(peer.get(), "x", 1024 * kMiB)).has_error());
  EXPECT_TRUE(peer->Answer(Acquire(peer.get(), "x", kMiB)).has_grant());
}

TEST_F(CoreSharedTest, AWriterThatEndsBeforeItSealsLeavesTheNameToOthers) {
  const auto writer = Connect("idle");
  ASSERT_TRUE(
      writer->Answer(Acquire(writer.get(), "weights", kMiB)).has_grant());
  const auto reader = Connect("idle");
  const uint64_t waiting = Attach(reader.get(), "weights", 30);
  core.CloseSession(writer->session, "killed");
  EXPECT_EQ(Reason(reader->Answer(waiting)), v1::NO_SUCH_LEASE);
  const v1::BrokerMessage own =
      reader->Answer(Acquire(reader.get(), "weights", kMiB));
  ASSERT_TRUE(own.has_grant());
  // One that releases it, too.
  const auto third = Connect("idle");
  const uint64_t again = Attach(third.get(), "weights", 30);
  reader->Release(own.grant().lease_id());
  EXPECT_EQ(Reason(third->Answer(again)), v1::NO_SUCH_LEASE);
}

TEST_F(CoreSharedTest, ItOutlivesItsWriterAndEndsWithTheLastReader) {
  const auto writer = Writer(10 * kMiB);
  const auto first = Reader(), second = Reader();
  core.CloseSession(writer->session, "gone");
  EXPECT_EQ(Lease(shared_).attached(), 2u);
  const auto late = Reader();
  EXPECT_TRUE(first->Answer(first->Release(shared_)).has_released());
  EXPECT_EQ(Reason(first->Answer(first->Release(shared_))), v1::NO_SUCH_LEASE);
  core.CloseSession(late->session, "gone");
  EXPECT_EQ(Pool().granted_bytes(), 10 * kMiB);
  EXPECT_TRUE(second->Answer(second->Release(shared_)).has_released());
  EXPECT_EQ(Pool().granted_bytes(), 0u);
  EXPECT_EQ(Reason(first->Answer(Attach(first.get(), "weights", 1))),
            v1::NO_SUCH_LEASE);
}

TEST_F(CoreSharedTest, OneThatIsKeptStaysUntilItIsDropped) {
  const auto writer = Writer(10 * kMiB, /*keep=*/true);
  core.CloseSession(writer->session, "gone");
  EXPECT_EQ(Lease(shared_).attached(), 0u);
  EXPECT_TRUE(Lease(shared_).keep());
  const auto reader = Reader();
  ASSERT_TRUE(Drop(reader.get(), "weights").has_dropped());
  EXPECT_EQ(Reason(Drop(reader.get(), "weights")), v1::NO_SUCH_LEASE);
  EXPECT_EQ(Pool().granted_bytes(), 10 * kMiB);  // of who has it still
  // The name is free at once, and the old one's end does not touch the new.
  const auto next = Connect("idle");
  const v1::BrokerMessage anew =
      next->Answer(Acquire(next.get(), "weights", 4 * kMiB));
  ASSERT_TRUE(anew.has_grant());
  reader->Release(shared_);
  EXPECT_EQ(Pool().granted_bytes(), 4 * kMiB);
  ASSERT_TRUE(Seal(next.get(), anew.grant().lease_id()).has_sealed());
  EXPECT_TRUE(reader->Answer(Attach(reader.get(), "weights", 1)).has_grant());
}

TEST_F(CoreSharedTest, AnOperatorDropsWhatIsKeptAndATenantsEndTakesItAlong) {
  auto writer = Writer(10 * kMiB, /*keep=*/true);
  core.CloseSession(writer->session, "gone");
  EXPECT_EQ(core.DropLease("nobody", "weights").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(*core.DropLease("idle", "weights"), 0u);
  EXPECT_EQ(Pool().granted_bytes(), 0u);
  EXPECT_FALSE(core.DropLease("idle", "weights").ok());
  writer = Writer(10 * kMiB, /*keep=*/true);
  core.CloseSession(writer->session, "gone");
  core.EndKept("idle");
  EXPECT_TRUE(core.DeleteTenant("idle").ok());
  EXPECT_EQ(Pool().granted_bytes(), 0u);
}

TEST_F(CoreSharedTest, ItIsEvictedOnlyWhenAllAreParkedAndComesBackToWhoWants) {
  const auto writer = Writer(20 * kMiB);
  const auto reader = Reader();
  writer->Park();
  EnterScope(reader.get());
  const auto busy = Connect("busy");
  EXPECT_EQ(Reason(busy->Answer(busy->Acquire(40 * kMiB, 1))),
            v1::POOL_EXHAUSTED);
  EXPECT_EQ(writer->Word().state(), ipc::GateState::kParked);
  reader->Park(2);
  const Taken taken = Take({writer.get(), reader.get()}, 40 * kMiB);
  EXPECT_EQ(writer->Word().state(), ipc::GateState::kClosed);
  EXPECT_EQ(reader->Word().state(), ipc::GateState::kClosed);
  EXPECT_EQ(Lease(shared_).state(), v1::LeaseInfo::EVICTED);
  taken.busy->Release(taken.lease);
  const uint64_t first = reader->Restore(30);
  Map(reader.get());
  EXPECT_TRUE(reader->Answer(first).has_restored());
  EXPECT_EQ(reader->Word().state(), ipc::GateState::kParked);
  EXPECT_FALSE(IsAskedToMap(writer.get()));
  EXPECT_EQ(writer->Word().state(), ipc::GateState::kClosed);
  EnterScope(reader.get(), 4);
  // The other needs only to map it.
  const uint64_t second = writer->Restore(30);
  Map(writer.get());
  EXPECT_TRUE(writer->Answer(second).has_restored());
  EXPECT_EQ(writer->Word().state(), ipc::GateState::kParked);
}

TEST_F(CoreSharedTest, TwoWhoWantItAtOnceBothGetIt) {
  const auto writer = Writer(20 * kMiB);
  const auto reader = Reader();
  const v1::BrokerMessage own =
      reader->Answer(reader->Acquire(4 * kMiB, kPatience));
  ASSERT_TRUE(own.has_grant());
  reader->Mapped(own.grant().lease_id());
  writer->Park();
  reader->Park();
  const auto busy = Connect("busy");
  const uint64_t request = busy->Acquire(50 * kMiB, kPatience);
  for (FakePeer* peer : {writer.get(), reader.get()}) {
    uint64_t move = 0;
    for (int i = peer == reader.get() ? 2 : 1; i > 0; --i) {
      const v1::Evict evict = peer->AwaitEvict(move);
      peer->Unmapped(evict.lease_id(), move = evict.move());
    }
    moves_[peer] = move;
  }
  const v1::BrokerMessage grant = busy->Answer(request);
  ASSERT_TRUE(grant.has_grant());
  const uint64_t a = writer->Restore(30), b = reader->Restore(30);
  busy->Release(grant.grant().lease_id());
  Map(writer.get());
  for (int i = 0; i < 2; ++i) {
    const v1::Map map = reader->AwaitMap(moves_[reader.get()]);
    reader->Mapped(map.lease_id(), moves_[reader.get()] = map.move());
  }
  EXPECT_TRUE(writer->Answer(a).has_restored());
  EXPECT_TRUE(reader->Answer(b).has_restored());
}

TEST_F(CoreSharedTest, WhoAskedForItEndsAndTheOtherGetsItAllTheSame) {
  const auto [writer, reader, taken] = Away(50 * kMiB);
  writer->Restore(30);  // waits for bytes
  const uint64_t waiting = reader->Restore(30);
  core.CloseSession(writer->session, "killed");
  taken.busy->Release(taken.lease);
  Map(reader.get());
  EXPECT_TRUE(reader->Answer(waiting).has_restored());
}

TEST_F(CoreSharedTest, AnAskersDeadlineIsNotTheOthers) {
  const auto [writer, reader, taken] = Away(50 * kMiB);
  const uint64_t impatient = writer->Restore(1);
  const uint64_t patient = reader->Restore(30);
  EXPECT_EQ(Reason(writer->Answer(impatient)), v1::POOL_EXHAUSTED);
  taken.busy->Release(taken.lease);
  Map(reader.get());
  EXPECT_TRUE(reader->Answer(patient).has_restored());
}

TEST_F(CoreSharedTest, WhoCannotMapItIsToldAndTheOthersKeepIt) {
  const auto [writer, reader, taken] = Away(40 * kMiB);
  BringBack(writer.get(), taken);
  EnterScope(writer.get(), 4);
  const uint64_t second = reader->Restore(30);
  const v1::Map map = reader->AwaitMap(moves_[reader.get()]);
  v1::ClientMessage failed;
  failed.mutable_mapped()->set_lease_id(shared_);
  failed.mutable_mapped()->set_move(map.move());
  failed.mutable_mapped()->mutable_error()->set_code(13);
  failed.mutable_mapped()->mutable_error()->set_message("no room");
  reader->Send(failed);
  moves_[reader.get()] = map.move();
  EXPECT_EQ(Reason(reader->Answer(second)), v1::DEVICE_ERROR);
  EXPECT_EQ(Lease(shared_).state(), v1::LeaseInfo::MAPPED);
  const uint64_t again = reader->Restore(30);
  Map(reader.get());
  EXPECT_TRUE(reader->Answer(again).has_restored());
}

TEST_F(CoreSharedTest, AnAttachBringsItBack) {
  const auto writer = Writer(20 * kMiB);
  writer->Park();
  const Taken taken = Take({writer.get()}, 40 * kMiB);
  const auto reader = Connect("idle");
  GateOn(reader.get());
  EXPECT_EQ(Reason(reader->Answer(Attach(reader.get(), "weights", 0))),
            v1::POOL_EXHAUSTED);
  const uint64_t waiting = Attach(reader.get(), "weights", 30);
  const auto hasty = Connect("idle");
  const uint64_t cancelled = Attach(hasty.get(), "weights", 30);
  v1::ClientMessage cancel;
  cancel.mutable_cancel()->set_acquire_request_id(cancelled);
  hasty->Send(cancel);
  EXPECT_EQ(Reason(hasty->Answer(cancelled)), v1::CANCELLED_BY_CLIENT);
  taken.busy->Release(taken.lease);
  EXPECT_TRUE(reader->Answer(waiting).has_grant());
  EXPECT_FALSE(IsAskedToMap(writer.get()));
  EXPECT_EQ(Lease(shared_).attached(), 2u);
}

TEST_F(CoreSharedTest, OneThatIsEvictedBeforeItIsSealedIsNobodyElses) {
  const auto writer = Connect("idle");
  GateOn(writer.get());
  const v1::BrokerMessage grant =
      writer->Answer(Acquire(writer.get(), "weights", 20 * kMiB));
  shared_ = grant.grant().lease_id();
  writer->Mapped(shared_);
  const auto reader = Connect("idle");
  const uint64_t waiting = Attach(reader.get(), "weights", 30);
  writer->Park();
  const Taken taken = Take({writer.get()}, 40 * kMiB);
  taken.busy->Release(taken.lease);
  const uint64_t restore = writer->Restore(30);
  Map(writer.get());
  EXPECT_TRUE(writer->Answer(restore).has_restored());
  EXPECT_EQ(Lease(shared_).attached(), 0u);
  ASSERT_TRUE(Seal(writer.get(), shared_).has_sealed());
  EXPECT_TRUE(reader->Answer(waiting).has_grant());
  EXPECT_EQ(Lease(shared_).attached(), 2u);
}

TEST_F(CoreSharedTest, AReaderThatEndsWhileItIsComingBackDoesNotEndThat) {
  const auto [writer, reader, taken] = Away(50 * kMiB);
  const uint64_t restore = writer->Restore(30);
  taken.busy->Release(taken.lease);  // its slabs are being made
  core.CloseSession(reader->session, "killed");
  Map(writer.get());
  EXPECT_TRUE(writer->Answer(restore).has_restored());
  EXPECT_EQ(Lease(shared_).state(), v1::LeaseInfo::MAPPED);
}

TEST_F(CoreSharedTest, AnAttachersEndLeavesTheOthersWaiting) {
  const auto writer = Writer(20 * kMiB);
  writer->Park();
  const Taken taken = Take({writer.get()}, 50 * kMiB);
  const auto first = Connect("idle"), second = Connect("idle");
  Attach(first.get(), "weights", 30);
  const uint64_t waiting = Attach(second.get(), "weights", 30);
  core.CloseSession(first->session, "killed");
  taken.busy->Release(taken.lease);
  EXPECT_TRUE(second->Answer(waiting).has_grant());
}

TEST_F(CoreSharedTest, KeptOnesThatNobodyUsesAreTakenFirst) {
  const auto writer = Writer(20 * kMiB, /*keep=*/true);
  core.CloseSession(writer->session, "gone");
  const auto busy = Connect("busy");
  const v1::BrokerMessage grant =
      busy->Answer(busy->Acquire(40 * kMiB, kPatience));
  ASSERT_TRUE(grant.has_grant()) << grant.ShortDebugString();
  EXPECT_EQ(Lease(shared_).state(), v1::LeaseInfo::EVICTED);
  busy->Release(grant.grant().lease_id());
  const auto reader = Reader();
  EXPECT_EQ(Lease(shared_).attached(), 1u);
}

TEST_F(CoreSharedTest, OneWhoseGateIsOffMakesItHard) {
  const auto writer = Writer(20 * kMiB);
  EXPECT_FALSE(Lease(shared_).hard());
  {
    const auto reader = Reader(/*gate=*/false);
    EXPECT_TRUE(Lease(shared_).hard());
    writer->Park();
    const auto busy = Connect("busy");
    EXPECT_TRUE(busy->Answer(busy->Acquire(40 * kMiB, 1)).has_error());
    reader->Release(shared_);
  }
  EXPECT_FALSE(Lease(shared_).hard());
  SetTenant("owner", Amount::Bytes(40 * kMiB), Amount::Fraction(1));
  const auto reader = Connect("idle");
  EXPECT_EQ(Reason(reader->Answer(Attach(reader.get(), "weights", 1))),
            v1::OVERCOMMITTED);
  EXPECT_EQ(Lease(shared_).attached(), 1u);
}

TEST_F(CoreSharedTest, AllWhoUseItArePausedForAGuarantee) {
  const auto writer = Writer(20 * kMiB);
  const auto reader = Reader();
  EnterScope(writer.get());
  EnterScope(reader.get());
  SetTenant("owner", Amount::Bytes(40 * kMiB), Amount::Fraction(1));
  const auto owner = Connect("owner");
  const uint64_t request = owner->Acquire(40 * kMiB, kPatience);
  for (FakePeer* peer : {writer.get(), reader.get()}) {
    EXPECT_TRUE(
        peer->Await([](const v1::BrokerMessage& m) { return m.has_pausing(); })
            .has_pausing());
  }
  writer->SetWord(
      ipc::GateWord(ipc::GateState::kParked, 0, 1, /*paused=*/true));
  reader->SetWord(
      ipc::GateWord(ipc::GateState::kParked, 0, 1, /*paused=*/true));
  for (FakePeer* peer : {writer.get(), reader.get()}) {
    const v1::Evict evict = peer->AwaitEvict();
    peer->Unmapped(shared_, evict.move());
  }
  EXPECT_TRUE(owner->Answer(request).has_grant());
}

TEST_F(CoreSharedTest, WhoComesBackDuringAPauseWaitsForItsEnd) {
  const auto [writer, reader, taken] = Away(40 * kMiB);
  BringBack(writer.get(), taken);
  EnterScope(writer.get(), 4);
  SetTenant("owner", Amount::Bytes(40 * kMiB), Amount::Fraction(1));
  const auto owner = Connect("owner");
  const uint64_t request = owner->Acquire(40 * kMiB, kPatience);
  EXPECT_TRUE(
      writer->Await([](const v1::BrokerMessage& m) { return m.has_pausing(); })
          .has_pausing());
  const uint64_t second = reader->Restore(30);
  const auto late = Connect("idle");
  GateOn(late.get());
  const uint64_t attach = Attach(late.get(), "weights", 30);
  EXPECT_FALSE(IsAskedToMap(reader.get()));
  writer->SetWord(
      ipc::GateWord(ipc::GateState::kParked, 0, 4, /*paused=*/true));
  const v1::Evict evict = writer->AwaitEvict(moves_[writer.get()]);
  writer->Unmapped(shared_, evict.move());
  const v1::BrokerMessage grant = owner->Answer(request);
  ASSERT_TRUE(grant.has_grant());
  owner->Release(grant.grant().lease_id());
  Map(reader.get());
  EXPECT_TRUE(reader->Answer(second).has_restored());
  EXPECT_TRUE(late->Answer(attach).has_grant());
}

TEST_F(CoreSharedTest, ItComesBackForTheOthersWhenWhoAskedReleasesIt) {
  const auto [writer, reader, taken] = Away(50 * kMiB);
  writer->Restore(30);
  const uint64_t waiting = reader->Restore(30);
  EXPECT_TRUE(writer->Answer(writer->Release(shared_)).has_released());
  taken.busy->Release(taken.lease);
  Map(reader.get());
  EXPECT_TRUE(reader->Answer(waiting).has_restored());
  EXPECT_EQ(Lease(shared_).state(), v1::LeaseInfo::MAPPED);
}

TEST_F(CoreSharedTest, ADropWhileItIsAskedBackForAnAttachLeavesOthersTheirs) {
  const auto writer = Writer(20 * kMiB);
  writer->Park();
  const Taken taken = Take({writer.get()}, 50 * kMiB);
  const auto reader = Connect("idle");
  const uint64_t attach = Attach(reader.get(), "weights", 30);
  const uint64_t waiting = writer->Restore(30);
  ASSERT_TRUE(Drop(reader.get(), "weights").has_dropped());
  EXPECT_EQ(Reason(reader->Answer(attach)), v1::NO_SUCH_LEASE);
  core.CloseSession(reader->session, "gone");  // and with it who asked
  taken.busy->Release(taken.lease);
  Map(writer.get());
  EXPECT_TRUE(writer->Answer(waiting).has_restored());
}

TEST_F(CoreSharedTest, SealedWhileItsWriterWaitsForItItServesBoth) {
  const auto writer = Connect("idle");
  GateOn(writer.get());
  shared_ = writer->Answer(Acquire(writer.get(), "weights", 20 * kMiB))
                .grant()
                .lease_id();
  writer->Mapped(shared_);
  writer->Park();
  const Taken taken = Take({writer.get()}, 50 * kMiB);
  const auto reader = Connect("idle");
  const uint64_t attach = Attach(reader.get(), "weights", 30);
  const uint64_t waiting = writer->Restore(30);
  ASSERT_TRUE(Seal(writer.get(), shared_).has_sealed());
  taken.busy->Release(taken.lease);
  Map(writer.get());
  EXPECT_TRUE(writer->Answer(waiting).has_restored());
  EXPECT_TRUE(reader->Answer(attach).has_grant());
}

// The clock is ahead of the client, which never answers.
TEST_F(CoreSharedTest, AMapThatIsNeverAnsweredMakesItHardForAll) {
  const auto [writer, reader, taken] = Away(40 * kMiB);
  BringBack(writer.get(), taken);
  reader->Restore(600);
  const v1::Map unanswered = reader->AwaitMap(moves_[reader.get()]);
  ASSERT_EQ(unanswered.lease_id(), shared_);
  clock.Advance(std::chrono::seconds(31));
  core.Tick();
  EXPECT_TRUE(Lease(shared_).hard());
  // Its neighbour's gate makes no difference to that.
  EnterScope(writer.get(), 4);
  EXPECT_TRUE(writer->Answer(writer->SetGate(false)).has_gate_set());
  EXPECT_TRUE(writer->Answer(writer->SetGate(true)).has_gate_set());
  EXPECT_TRUE(Lease(shared_).hard());
  core.CloseSession(reader->session, "killed");
  EXPECT_FALSE(Lease(shared_).hard());
}

class CoreSharedIpcTest : public CoreSharedTest {
 protected:
  void SetUp() override {
    ASSERT_NE(AddFaultyPool(14 * kMiB, 14 * kMiB, device::DeviceKind::kIpc),
              nullptr);
    SetTenant("idle", Amount::Bytes(0), Amount::Fraction(1));
  }
};

TEST_F(CoreSharedIpcTest, OneThatNobodyUsesStaysHardWhereItCanNotBeMoved) {
  const auto writer = Writer(10 * kMiB, /*keep=*/true);
  EXPECT_TRUE(Lease(shared_).hard());
  core.CloseSession(writer->session, "gone");
  EXPECT_EQ(Lease(shared_).attached(), 0u);
  EXPECT_TRUE(Lease(shared_).hard());
}

TEST_F(CoreSharedTest, AReaderThatEndsDuringAnEvictionDoesNotHoldItUp) {
  const auto writer = Writer(20 * kMiB);
  const auto reader = Reader();
  writer->Park();
  reader->Park();
  const auto busy = Connect("busy");
  const uint64_t request = busy->Acquire(40 * kMiB, kPatience);
  const v1::Evict evict = writer->AwaitEvict();
  (void)reader->AwaitEvict();  // and is killed before it answers
  writer->Unmapped(shared_, evict.move());
  core.CloseSession(reader->session, "killed");
  EXPECT_TRUE(busy->Answer(request).has_grant());
  EXPECT_EQ(Lease(shared_).state(), v1::LeaseInfo::EVICTED);
}

TEST_F(CoreSharedTest, NobodyLearnsOfItOnceHisTenantLeaves) {
  const auto writer = Writer(20 * kMiB);
  writer->Park();
  const Taken taken = Take({writer.get()}, 50 * kMiB);
  const auto reader = Connect("idle");
  const uint64_t waiting = Attach(reader.get(), "weights", 30);
  EXPECT_TRUE(core.StartDeparture("idle", std::chrono::seconds(30),
                                  [](const absl::Status&) {})
                  .ok());
  EXPECT_EQ(Reason(reader->Answer(waiting)), v1::DRAINING);
  EXPECT_EQ(Reason(reader->Answer(Attach(reader.get(), "weights", 1))),
            v1::DRAINING);
}

}  // namespace
}  // namespace gmb::broker
