#ifndef GMB_TESTS_BROKER_CORE_CORE_SHARED_FIXTURE_H_
#define GMB_TESTS_BROKER_CORE_CORE_SHARED_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipc/gate_control.h"
#include "tests/broker/core/core_reclaim_fixture.h"

namespace gmb::broker {

// A shared lease named "weights", and who has it.
class CoreSharedTest : public CoreReclaimTest {
 protected:
  static uint64_t Acquire(FakePeer* peer, const std::string& name,
                          uint64_t bytes, bool keep = false) {
    v1::ClientMessage message;
    message.mutable_acquire()->set_bytes(bytes);
    message.mutable_acquire()->set_share_as(name);
    message.mutable_acquire()->set_keep(keep);
    return peer->Send(message);
  }
  static uint64_t Attach(FakePeer* peer, const std::string& name,
                         int wait_seconds) {
    v1::ClientMessage message;
    message.mutable_attach()->set_name(name);
    message.mutable_attach()->mutable_wait()->set_seconds(wait_seconds);
    return peer->Send(message);
  }
  static v1::BrokerMessage Seal(FakePeer* peer, uint64_t lease) {
    v1::ClientMessage message;
    message.mutable_seal()->set_lease_id(lease);
    return peer->Answer(peer->Send(message));
  }
  static v1::BrokerMessage Drop(FakePeer* peer, const std::string& name) {
    v1::ClientMessage message;
    message.mutable_drop()->set_name(name);
    return peer->Answer(peer->Send(message));
  }
  static v1::ErrorReason Reason(const v1::BrokerMessage& answer) {
    return answer.error().detail().reason();
  }
  static void GateOn(FakePeer* peer) {
    EXPECT_TRUE(peer->Answer(peer->SetGate(true)).has_gate_set());
  }
  static void EnterScope(FakePeer* peer, uint64_t epoch = 1) {
    peer->SetWord(ipc::GateWord(ipc::GateState::kOpen, 1, epoch));
  }
  // Sealed, of `idle`, by a session whose gate is on.
  std::shared_ptr<FakePeer> Writer(uint64_t bytes, bool keep = false) {
    auto writer = Connect("idle");
    GateOn(writer.get());
    const v1::BrokerMessage grant =
        writer->Answer(Acquire(writer.get(), "weights", bytes, keep));
    EXPECT_TRUE(grant.has_grant()) << grant.ShortDebugString();
    shared_ = grant.grant().lease_id();
    writer->Mapped(shared_);
    EXPECT_TRUE(Seal(writer.get(), shared_).has_sealed());
    return writer;
  }
  std::shared_ptr<FakePeer> Reader(bool gate = true) {
    auto reader = Connect("idle");
    if (gate) GateOn(reader.get());
    const v1::BrokerMessage grant =
        reader->Answer(Attach(reader.get(), "weights", kPatience));
    EXPECT_TRUE(grant.has_grant()) << grant.ShortDebugString();
    EXPECT_TRUE(grant.grant().attached());
    EXPECT_EQ(grant.grant().lease_id(), shared_);
    reader->Mapped(shared_);
    return reader;
  }
  // All who are attached have it taken from them, for a lease of `busy`.
  struct Taken {
    std::shared_ptr<FakePeer> busy;
    uint64_t lease = 0;
  };
  Taken Take(const std::vector<FakePeer*>& attached, uint64_t bytes) {
    Taken taken{Connect("busy")};
    const uint64_t request = taken.busy->Acquire(bytes, kPatience);
    for (FakePeer* peer : attached) {
      const v1::Evict evict = peer->AwaitEvict(moves_[peer]);
      EXPECT_EQ(evict.lease_id(), shared_);
      peer->Unmapped(shared_, moves_[peer] = evict.move());
    }
    const v1::BrokerMessage grant = taken.busy->Answer(request);
    EXPECT_TRUE(grant.has_grant()) << grant.ShortDebugString();
    taken.lease = grant.grant().lease_id();
    return taken;
  }
  // A writer's and a reader's 20 MiB, both parked, away.
  struct BothAway {
    std::shared_ptr<FakePeer> writer;
    std::shared_ptr<FakePeer> reader;
    Taken taken;
  };
  BothAway Away(uint64_t bytes) {
    BothAway away{.writer = Writer(20 * kMiB), .reader = Reader(), .taken = {}};
    away.writer->Park();
    away.reader->Park();
    away.taken = Take({away.writer.get(), away.reader.get()}, bytes);
    return away;
  }
  // For that one alone.
  void BringBack(FakePeer* peer, const Taken& taken) {
    taken.busy->Release(taken.lease);
    const uint64_t restore = peer->Restore(30);
    Map(peer);
    EXPECT_TRUE(peer->Answer(restore).has_restored());
  }
  void Map(FakePeer* peer) {
    const v1::Map map = peer->AwaitMap(moves_[peer]);
    EXPECT_EQ(map.lease_id(), shared_);
    peer->Mapped(shared_, moves_[peer] = map.move());
  }
  bool IsAskedToMap(FakePeer* peer) {
    base::MutexLock lock(&peer->mu);
    for (const v1::BrokerMessage& message : peer->messages) {
      if (message.has_map() && message.map().move() > moves_[peer]) return true;
    }
    return false;
  }

  uint64_t shared_ = 0;
  std::map<FakePeer*, uint64_t> moves_;  // the last one answered
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_CORE_CORE_SHARED_FIXTURE_H_
