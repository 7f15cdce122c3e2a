// Many sessions of two tenants over shared and own leases, at random: whoever
// is in a scope has all his leases mapped, and nothing is left in the end.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "ipc/gate_control.h"
#include "tests/broker/core/core_reclaim_fixture.h"

namespace gmb::broker {
namespace {

constexpr int kPeers = 6;
constexpr int kSteps = 4000;
const std::string kNames[] = {"x", "y"};

// Counts what happened, so that a run in which nothing did is noticed.
struct Seen {
  int attached = 0;
  int evicted = 0;
  int mapped = 0;
  int restored = 0;
};

// A client that keeps to the rules, if slowly, and knows what it has mapped.
class Player {
 public:
  Player(std::shared_ptr<FakePeer> peer, std::mt19937* random, Seen* seen)
      : peer_(std::move(peer)), random_(*random), seen_(*seen) {
    peer_->SetGate(true);
    peer_->SetWord(ipc::GateWord(ipc::GateState::kParked, 0, 1));
  }

  [[nodiscard]] uint64_t session() const { return peer_->session; }

  void Step() {
    Read();
    if (!moves_.empty() && Below(8) != 0) return AnswerMove();
    if (in_scope_ && Below(3) != 0) return Leave();
    const bool closed =
        peer_->Word().state() == ipc::GateState::kClosed && restore_ == 0;
    if (closed && Below(4) == 0) return Enter();
    switch (Below(16)) {
      case 0:
        return Named();
      case 1:
      case 2:
        return Attach();
      case 3:
        return Seal();
      case 4:
        return Drop();
      case 5:
        return Release();
      case 6:
      case 7:
      case 8:
        return Enter();
      default:
        // One at a time, or nobody's turn to be restored would come.
        if (acquire_ != 0) return;
        acquire_ = peer_->Acquire((1 + Below(6)) * 2 * kMiB,
                                  static_cast<int>(Below(3)));
    }
  }

  // A session in a scope cannot be closed, so that this holds at any time.
  void CheckMapped(int step) {
    if (!in_scope_) return;
    for (const auto& [lease, mapped] : leases_)
      ASSERT_TRUE(mapped) << "lease " << lease << " step " << step;
  }

  // All moves that have come.
  void AnswerAll() {
    Read();
    while (!moves_.empty()) AnswerMove(/*willing=*/true);
    if (in_scope_) Leave();
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }

  void Read() {
    std::vector<v1::BrokerMessage> fresh;
    {
      base::MutexLock lock(&peer_->mu);
      fresh.assign(peer_->messages.begin() + static_cast<std::ptrdiff_t>(read_),
                   peer_->messages.end());
      read_ = peer_->messages.size();
    }
    for (const v1::BrokerMessage& message : fresh) {
      if (message.request_id() == acquire_ && !message.has_waiting())
        acquire_ = 0;
      if (message.has_grant()) {
        ASSERT_TRUE(leases_.emplace(message.grant().lease_id(), true).second);
        peer_->Mapped(message.grant().lease_id());
        seen_.attached += message.grant().attached() ? 1 : 0;
      } else if (message.has_evict() || message.has_map()) {
        moves_.push_back(message);
      } else if (message.has_restored() || message.has_error()) {
        if (message.request_id() == restore_) restore_ = 0;
        seen_.restored += message.has_restored() ? 1 : 0;
      }
    }
  }

  void AnswerMove(bool willing = false) {
    if (moves_.empty()) return;
    const v1::BrokerMessage move = moves_.front();
    moves_.erase(moves_.begin());
    const bool refuses = !willing && Below(12) == 0;
    const bool out = move.has_evict();
    const uint64_t lease =
        out ? move.evict().lease_id() : move.map().lease_id();
    const auto known = leases_.find(lease);
    if (known == leases_.end()) return;  // released meanwhile
    v1::ClientMessage answer;
    v1::Error error;
    error.set_code(13);
    error.set_message("it will not");
    if (out) {
      answer.mutable_unmapped()->set_lease_id(lease);
      answer.mutable_unmapped()->set_move(move.evict().move());
      if (refuses) *answer.mutable_unmapped()->mutable_error() = error;
      if (!refuses) known->second = false;
      ++seen_.evicted;
    } else {
      answer.mutable_mapped()->set_lease_id(lease);
      answer.mutable_mapped()->set_move(move.map().move());
      if (refuses) *answer.mutable_mapped()->mutable_error() = error;
      known->second = !refuses;
      ++seen_.mapped;
    }
    peer_->Send(answer);
  }

  void Named() {
    v1::ClientMessage message;
    message.mutable_acquire()->set_bytes((1 + Below(4)) * 2 * kMiB);
    message.mutable_acquire()->set_share_as(kNames[Below(2)]);
    message.mutable_acquire()->set_keep(Below(2) == 0);
    peer_->Send(message);
  }
  void Attach() {
    v1::ClientMessage message;
    message.mutable_attach()->set_name(kNames[Below(2)]);
    message.mutable_attach()->mutable_wait()->set_seconds(
        static_cast<int64_t>(Below(2)));
    const uint64_t id = peer_->Send(message);
    if (Below(8) != 0) return;
    v1::ClientMessage cancel;
    cancel.mutable_cancel()->set_acquire_request_id(id);
    peer_->Send(cancel);
  }
  std::optional<uint64_t> Some() {
    if (leases_.empty()) return std::nullopt;
    auto it = leases_.begin();
    std::advance(it, Below(leases_.size()));
    return it->first;
  }
  void Seal() {
    for (const auto& [lease, mapped] : leases_) {
      v1::ClientMessage message;
      message.mutable_seal()->set_lease_id(lease);
      peer_->Send(message);
    }
  }
  void Drop() {
    if (Below(4) != 0) return;
    v1::ClientMessage message;
    message.mutable_drop()->set_name(kNames[Below(2)]);
    peer_->Send(message);
  }
  void Release() {
    const auto lease = Some();
    if (!lease) return;
    leases_.erase(*lease);
    peer_->Release(*lease);
  }

  void Enter() {
    if (in_scope_) return;
    auto& word = peer_->gate->cells().word;
    uint64_t seen = word.load();
    const auto next = ipc::AfterEnter(ipc::GateWord(seen));
    if (next.has_value() && word.compare_exchange_strong(seen, next->bits())) {
      in_scope_ = true;
    } else if (restore_ == 0) {
      restore_ = peer_->Restore(static_cast<int>(1 + Below(5)));
    }
  }
  // And parks at once.
  void Leave() {
    if (!in_scope_) return;
    in_scope_ = false;
    auto& word = peer_->gate->cells().word;
    while (true) {
      uint64_t seen = word.load();
      const ipc::GateWord out = *ipc::AfterLeave(ipc::GateWord(seen));
      const ipc::GateWord parked(ipc::GateState::kParked, 0, out.epoch(),
                                 out.paused());
      if (word.compare_exchange_strong(seen, parked.bits())) return;
    }
  }

  std::shared_ptr<FakePeer> peer_;
  std::mt19937& random_;
  Seen& seen_;
  std::map<uint64_t, bool> leases_;  // and whether they are mapped
  std::vector<v1::BrokerMessage> moves_;
  size_t read_ = 0;
  bool in_scope_ = false;
  uint64_t restore_ = 0;  // not answered; 0: none
  uint64_t acquire_ = 0;  // likewise
};

class CoreSharedRandomTest : public CoreReclaimTest,
                             public testing::WithParamInterface<unsigned> {};

TEST_P(CoreSharedRandomTest, WhoIsInAScopeHasAllAndNothingIsLeft) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  SetTenant("idle", quota::Amount::Bytes(12 * kMiB),
            quota::Amount::Fraction(1));
  std::mt19937 random(GetParam());
  Seen seen;
  const auto connect = [&] {
    return std::make_unique<Player>(
        Connect(random() % 3 == 0 ? "busy" : "idle"), &random, &seen);
  };
  std::vector<std::unique_ptr<Player>> players;
  for (int i = 0; i < kPeers; ++i) players.push_back(connect());
  for (int step = 0; step < kSteps; ++step) {
    auto& player = players[random() % kPeers];
    if (random() % 100 == 0) {
      core.CloseSession(player->session(), "killed");
      player = connect();
    }
    player->Step();
    if (random() % 200 == 0) {
      const uint64_t bytes = (6 + random() % 20) * 2 * kMiB;
      ASSERT_TRUE(core.ResizePool("host-0", quota::Amount::Bytes(bytes)).ok());
    }
    clock.Advance(std::chrono::milliseconds(random() % 4));
    core.Tick();
    // Copies take their time in the real world; nothing is waited for by this.
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    for (const auto& other : players) other->CheckMapped(step);
    CheckSums();
    if (HasFailure()) return;
  }
  for (const auto& player : players) {
    player->AnswerAll();
    core.CloseSession(player->session(), "done");
  }
  for (const std::string tenant : {"idle", "busy"}) core.EndKept(tenant);
  EXPECT_TRUE(AwaitPool([this](const v1::PoolStatus& pool) {
    return pool.granted_bytes() == 0 && core.Status().leases() == 0 &&
           core.Status().handles() == 0;
  })) << core.Leases(v1::ListLeasesRequest())->ShortDebugString();
  EXPECT_TRUE(journal.All().leases.empty());
  // How much happens depends on how fast the copies are. The machine's own
  // runs count it (tests/broker/machine).
  EXPECT_GT(seen.attached, 0);
  EXPECT_GT(seen.evicted, 0);
}

unsigned Seeds() {
  const char* seeds = std::getenv("GMB_CORE_SEEDS");
  return seeds == nullptr ? 4 : static_cast<unsigned>(std::atoi(seeds));
}
INSTANTIATE_TEST_SUITE_P(Seeds, CoreSharedRandomTest,
                         testing::Range(1u, 1 + Seeds()));

}  // namespace
}  // namespace gmb::broker
