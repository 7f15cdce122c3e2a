// Programs that say they could give memory back: who does, who does not, and
// who says so again and again.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "ipc/gate_control.h"
#include "tests/broker/core/core_reclaim_fixture.h"

namespace gmb::broker {
namespace {

using quota::Amount;

class CoreTrimTest : public CoreReclaimTest {
 protected:
  explicit CoreTrimTest(const MachineOptions& options = ReclaimOptions())
      : CoreReclaimTest(options) {}

  static void SayTrimmable(FakePeer* peer, uint64_t bytes) {
    v1::ClientMessage message;
    v1::SetTrimmable::OnDevice* on =
        message.mutable_set_trimmable()->add_devices();
    on->set_device("host-0");
    on->set_bytes(bytes);
    peer->Send(message);
  }
  static void SayTrimmed(FakePeer* peer, uint64_t trim) {
    v1::ClientMessage message;
    message.mutable_trimmed()->set_trim(trim);
    peer->Send(message);
  }
  static v1::Trim AwaitTrim(FakePeer* peer, uint64_t after = 0) {
    return peer
        ->Await([after](const v1::BrokerMessage& m) {
          return m.has_trim() && m.trim().trim() > after;
        })
        .trim();
  }
  static uint64_t Trims(FakePeer* peer) {
    base::MutexLock lock(&peer->mu);
    uint64_t trims = 0;
    for (const v1::BrokerMessage& message : peer->messages)
      trims += message.has_trim() ? 1 : 0;
    return trims;
  }
  static void EnterScope(FakePeer* peer) {
    peer->SetWord(ipc::GateWord(ipc::GateState::kOpen, 1, 1));
  }
};

// Says that it could give so much back, gives nothing, and says it again.
class Liar {
 public:
  Liar(std::shared_ptr<FakePeer> peer, uint64_t bytes)
      : peer_(std::move(peer)), bytes_(bytes) {
    peer_->Park();
    Say();
  }

  void Step() {
    std::vector<v1::BrokerMessage> fresh;
    {
      base::MutexLock lock(&peer_->mu);
      fresh.assign(peer_->messages.begin() + static_cast<std::ptrdiff_t>(read_),
                   peer_->messages.end());
      read_ = peer_->messages.size();
    }
    for (const v1::BrokerMessage& message : fresh) {
      if (message.has_evict()) {
        peer_->Unmapped(message.evict().lease_id(), message.evict().move());
      } else if (message.has_trim()) {
        Say();
        v1::ClientMessage trimmed;
        trimmed.mutable_trimmed()->set_trim(message.trim().trim());
        peer_->Send(trimmed);
        Say();
      }
    }
  }

 private:
  void Say() {
    v1::ClientMessage message;
    v1::SetTrimmable::OnDevice* on =
        message.mutable_set_trimmable()->add_devices();
    on->set_device("host-0");
    on->set_bytes(bytes_);
    peer_->Send(message);
  }

  std::shared_ptr<FakePeer> peer_;
  const uint64_t bytes_;
  size_t read_ = 0;
};

TEST_F(CoreTrimTest, TrimsThatGiveNothingPutOffNoEviction) {
  constexpr uint64_t kBytes = 2 * kMiB;
  SetTenant("owner", Amount::Bytes(20 * kMiB), Amount::Fraction(1));
  std::vector<Liar> liars;
  for (int i = 0; i < 24; ++i)
    liars.emplace_back(Holder("idle", kBytes), kBytes);
  const auto owner = Connect("owner");
  // 4 MiB are free: each liar by itself could give what is lacking.
  const uint64_t request = owner->Acquire(6 * kMiB, 60);
  const auto answered = [&] {
    base::MutexLock lock(&owner->mu);
    for (const v1::BrokerMessage& message : owner->messages) {
      if (message.request_id() == request && !message.has_waiting())
        return true;
    }
    return false;
  };
  while (!answered()) {
    for (Liar& liar : liars) liar.Step();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_TRUE(owner->Answer(request).has_grant())
      << owner->Answer(request).ShortDebugString();
}

TEST_F(CoreTrimTest, WhoGaveLessThanHeSaidIsNotAskedForAWhile) {
  const auto idle = Holder("idle", 40 * kMiB);
  EnterScope(idle.get());
  SayTrimmable(idle.get(), 40 * kMiB);
  const auto busy = Connect("busy");
  const uint64_t request = busy->Acquire(20 * kMiB, 60);
  const v1::Trim first = AwaitTrim(idle.get());
  EXPECT_EQ(first.bytes(), 40 * kMiB);
  SayTrimmable(idle.get(), 40 * kMiB);
  SayTrimmed(idle.get(), first.trim());
  for (int i = 0; i < 3; ++i) {
    clock.Advance(std::chrono::seconds(1));
    core.Tick();
  }
  EXPECT_EQ(Trims(idle.get()), 1U);
  clock.Advance(std::chrono::seconds(8));
  core.Tick();
  const v1::Trim second = AwaitTrim(idle.get(), first.trim());
  EXPECT_GT(second.trim(), first.trim());
  idle->Release(lease_);
  EXPECT_TRUE(busy->Answer(request).has_grant());
}

TEST_F(CoreTrimTest, WhatIsGivenLateCountsAsGiven) {
  const auto idle = Holder("idle", 40 * kMiB);
  SayTrimmable(idle.get(), 40 * kMiB);
  const auto busy = Connect("busy");
  const uint64_t request = busy->Acquire(20 * kMiB, 60);
  const v1::Trim first = AwaitTrim(idle.get());
  SayTrimmed(idle.get(), first.trim());
  idle->Release(lease_);
  EXPECT_TRUE(busy->Answer(request).has_grant());
  ASSERT_TRUE(idle->Answer(idle->Acquire(20 * kMiB)).has_grant());
  SayTrimmable(idle.get(), 20 * kMiB);
  (void)busy->Acquire(20 * kMiB, 60);
  EXPECT_GT(AwaitTrim(idle.get(), first.trim()).trim(), first.trim());
}

MachineOptions TrimOptions() {
  MachineOptions options = ReclaimOptions();
  options.planner.trim_wait = std::chrono::seconds(30);
  return options;
}

class CorePatientTrimTest : public CoreTrimTest {
 protected:
  CorePatientTrimTest() : CoreTrimTest(TrimOptions()) {}
};

TEST_F(CorePatientTrimTest, AnEvictionWaitsForATrimThatIsUnderWay) {
  const auto idle = Holder("idle", 20 * kMiB);
  const uint64_t first = lease_;
  const v1::BrokerMessage second =
      idle->Answer(idle->Acquire(20 * kMiB, kPatience));
  ASSERT_TRUE(second.has_grant());
  idle->Mapped(second.grant().lease_id());
  idle->Park();
  SayTrimmable(idle.get(), 20 * kMiB);
  const auto busy = Connect("busy");
  const uint64_t request = busy->Acquire(20 * kMiB, 60);
  const v1::Trim trim = AwaitTrim(idle.get());
  for (int i = 0; i < 5; ++i) {
    clock.Advance(std::chrono::seconds(1));
    core.Tick();
    ASSERT_EQ(Lease(first).state(), v1::LeaseInfo::MAPPED);
    ASSERT_EQ(Lease(second.grant().lease_id()).state(), v1::LeaseInfo::MAPPED);
  }
  idle->Release(first);
  SayTrimmed(idle.get(), trim.trim());
  EXPECT_TRUE(busy->Answer(request).has_grant());
  // It gave what it had said: it is asked again.
  SayTrimmable(idle.get(), 20 * kMiB);
  const uint64_t another = busy->Acquire(20 * kMiB, 60);
  AwaitTrim(idle.get(), trim.trim());
  // A session that does not answer is waited for until the first asking's time
  // is up.
  clock.Advance(std::chrono::seconds(31));
  core.Tick();
  const v1::Evict evict = idle->AwaitEvict();
  idle->Unmapped(evict.lease_id(), evict.move());
  EXPECT_TRUE(busy->Answer(another).has_grant());
}

// So long that the time that the test itself takes does not matter.
constexpr std::chrono::minutes kTrimWait{10};

MachineOptions VeryPatientOptions() {
  MachineOptions options = ReclaimOptions();
  options.planner.trim_wait = kTrimWait;
  return options;
}

class CoreTrimsInTurnTest : public CoreTrimTest {
 protected:
  CoreTrimsInTurnTest() : CoreTrimTest(VeryPatientOptions()) {}
};

// Each alone could give what is lacking, and none does.
TEST_F(CoreTrimsInTurnTest, TheFirstAskingSaysWhenTheEvictionStarts) {
  constexpr auto kStep = kTrimWait / 3 - std::chrono::seconds(5);
  SetTenant("owner", Amount::Bytes(20 * kMiB), Amount::Fraction(1));
  std::vector<std::shared_ptr<FakePeer>> idle;
  std::vector<uint64_t> leases;
  // A session that could give more is asked before.
  for (const uint64_t bytes : {16 * kMiB, 14 * kMiB, 12 * kMiB}) {
    idle.push_back(Holder("idle", bytes));
    leases.push_back(lease_);
    idle.back()->Park();
    SayTrimmable(idle.back().get(), bytes);
  }
  const auto taken = [&] {
    return std::count_if(leases.begin(), leases.end(), [&](uint64_t lease) {
      return Lease(lease).state() != v1::LeaseInfo::MAPPED;
    });
  };
  const auto owner = Connect("owner");
  (void)owner->Acquire(18 * kMiB, /*wait_seconds=*/3600);
  for (const auto& session : idle) {
    const v1::Trim trim = AwaitTrim(session.get());
    clock.Advance(kStep);
    if (session != idle.back()) SayTrimmed(session.get(), trim.trim());
    core.Tick();
    EXPECT_EQ(taken(), 0);
  }
  clock.Advance(kTrimWait - 3 * kStep);
  core.Tick();
  EXPECT_TRUE(AwaitPool([&](const v1::PoolStatus&) { return taken() == 1; }));
}

TEST_F(CorePatientTrimTest, AReclaimThatOnlyTrimsIsAnsweredAfterTheTrim) {
  const auto idle = Holder("idle", 20 * kMiB);
  SayTrimmable(idle.get(), 20 * kMiB);
  v1::ReclaimRequest request;
  request.set_tenant("idle");
  request.set_bytes(20 * kMiB);
  request.set_to(v1::ReclaimRequest::TRIM);
  request.mutable_wait()->set_seconds(60);
  std::promise<uint64_t> answered;
  ASSERT_TRUE(core.StartReclaim(request,
                                [&](absl::StatusOr<v1::ReclaimResponse> done) {
                                  answered.set_value(done->reclaimed_bytes());
                                })
                  .ok());
  const v1::Trim trim = AwaitTrim(idle.get());
  for (int i = 0; i < 5; ++i) {
    clock.Advance(std::chrono::seconds(1));
    core.Tick();
  }
  idle->Release(lease_);
  SayTrimmed(idle.get(), trim.trim());
  clock.Advance(std::chrono::seconds(1));
  core.Tick();
  EXPECT_EQ(answered.get_future().get(), 20 * kMiB);
}

}  // namespace
}  // namespace gmb::broker
