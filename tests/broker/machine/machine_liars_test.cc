// Clients that do not answer when they are told to give memory back: what that
// costs others, and what it costs them.
#include <algorithm>
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "ipc/gate_word.h"
#include "tests/broker/machine/sim_world.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;

constexpr uint64_t kGranule = SimWorld::kGranule;
constexpr uint64_t kPool = 256;  // granules, as below
constexpr uint64_t kLease = 4;

class MachineLiarsTest : public testing::Test {
 protected:
  MachineLiarsTest()
      : world_({}, /*pools=*/1, kPool * kGranule, 2 * kPool * kGranule) {
    SetTenant("liar");
    SetTenant("idle");
    SetTenant("owner", 128);
  }

  void SetTenant(const std::string& name, uint64_t guarantee = 0,
                 bool may_terminate = false) {
    TenantPolicy policy;
    policy.name = name;
    policy.quota = {quota::Amount::Bytes(guarantee * kGranule),
                    quota::Amount::Fraction(1), 1};
    policy.max_sessions = 200;
    policy.reclaim.may_terminate = may_terminate;
    world_.Do("set tenant", [&](Turn& turn) {
      ASSERT_TRUE(world_.machine().operators().SetTenant(policy, turn).ok());
    });
  }
  // One that the broker can kill. Its gate is on, and parked.
  SimClient* ConnectParked(const std::string& tenant) {
    SimClient* client = world_.Connect(tenant);
    while (!HasPidfd(client)) client = world_.Connect(tenant);
    client->cells->word.store(
        ipc::GateWord(ipc::GateState::kParked, 0, 1).bits());
    v1::ClientMessage message;
    message.mutable_set_gate()->set_on(true);
    Send(client, message);
    return client;
  }
  [[nodiscard]] bool HasPidfd(const SimClient* client) const {
    return world_.state().SessionAt(client->session).peer.pidfd != nullptr;
  }
  uint64_t Send(SimClient* client, v1::ClientMessage message) {
    message.set_request_id(++client->last_request);
    world_.Send(client, message);
    return client->last_request;
  }
  void Ask(SimClient* client, uint64_t granules, int64_t wait_seconds = 0) {
    v1::ClientMessage message;
    message.mutable_acquire()->set_bytes(granules * kGranule);
    message.mutable_acquire()->mutable_wait()->set_seconds(wait_seconds);
    client->acquires[client->last_request + 1] = message.acquire();
    Send(client, message);
    RunDevice();
  }
  quota::LeaseId Lease(SimClient* client, uint64_t granules) {
    Ask(client, granules);
    return quota::LeaseId{client->leases.rbegin()->first};
  }
  void RunDevice() {
    while (world_.StepDevice(quota::PoolId{1})) {
    }
  }
  // Time goes on, devices and copies work, processes that were killed end, and
  // those of `answering` answer.
  void RunFor(quota::Nanoseconds time, const std::string& answering = "idle") {
    const quota::Instant end = world_.now() + time;
    Work(answering);
    while (world_.now() < end && world_.problem().empty()) {
      const quota::Instant due =
          std::max(world_.machine().NextDue(world_.now()),
                   world_.now() + std::chrono::milliseconds(1));
      world_.Advance(std::min(end, due) - world_.now());
      Work(answering);
    }
  }
  void Work(const std::string& answering) {
    while (world_.StepCopy(/*out=*/true, /*fail=*/false)) {
    }
    for (SimClient* client : world_.clients()) {
      if (client->ended) {
        ++killed_;
        world_.Close(client, "its process ended");
      } else if (client->tenant == answering) {
        Unmap(client);
      }
    }
    RunDevice();
  }
  void Unmap(SimClient* client) {
    for (; !client->moves.empty(); client->moves.pop_front()) {
      const v1::Evict& evict = client->moves.front().evict();
      world_.HoldSlabs(client->leases.at(evict.lease_id()), false);
      client->leases.at(evict.lease_id()).mapped = false;
      v1::ClientMessage message;
      message.mutable_unmapped()->set_lease_id(evict.lease_id());
      message.mutable_unmapped()->set_move(evict.move());
      world_.Send(client, message);
    }
  }
  // Evicts that are told to the tenant's processes and are not answered.
  size_t Unanswered(const std::string& tenant) {
    size_t moves = 0;
    for (const SimClient* client : world_.clients())
      moves += client->tenant == tenant ? client->moves.size() : 0;
    return moves;
  }
  [[nodiscard]] bool IsHard(quota::LeaseId lease) const {
    return world_.state().engine->Lease(lease)->hard;
  }

  SimWorld world_;
  int killed_ = 0;
};

TEST_F(MachineLiarsTest, SixtyOfThemDelayAGuaranteeByTenSecondsAtMost) {
  SetTenant("liar", 0, /*may_terminate=*/true);
  for (int process = 0; process < 20; ++process) {
    SimClient* liar = ConnectParked("liar");
    for (int i = 0; i < 3; ++i) Lease(liar, kLease);
  }
  SimClient* owner = world_.Connect("owner");
  // 16 granules are free: it lacks three leases.
  Ask(owner, 28, 60);
  RunFor(seconds(10));
  EXPECT_EQ(owner->granted, 1u);
  EXPECT_GT(killed_, 0);
  EXPECT_LE(killed_, 3);
  EXPECT_EQ(world_.problem(), "");
}

TEST_F(MachineLiarsTest, OneAtATimeTheyDelayItAsLittle) {
  SetTenant("liar", 0, /*may_terminate=*/true);
  for (int i = 0; i < 60; ++i) Lease(ConnectParked("liar"), kLease);
  SimClient* owner = world_.Connect("owner");
  Ask(owner, 20, 60);  // it lacks one
  RunFor(seconds(6));
  EXPECT_LE(Unanswered("liar"), 3u) << "of one tenant three are tried";
  RunFor(seconds(4));
  EXPECT_EQ(owner->granted, 1u);
  EXPECT_LE(killed_, 2);
  EXPECT_EQ(world_.problem(), "");
}

TEST_F(MachineLiarsTest, OthersAreAskedAfterThreeOfATenantThatMayNotBeKilled) {
  for (int i = 0; i < 40; ++i) Lease(ConnectParked("liar"), kLease);
  RunFor(seconds(1));  // the liars are the longest idle
  for (int i = 0; i < 20; ++i) Lease(ConnectParked("idle"), kLease);
  SimClient* owner = world_.Connect("owner");
  Ask(owner, 20, 60);
  RunFor(seconds(8));
  EXPECT_EQ(owner->granted, 1u);
  EXPECT_EQ(Unanswered("liar"), 3u);
  EXPECT_EQ(killed_, 0);
  EXPECT_EQ(world_.problem(), "");
}

TEST_F(MachineLiarsTest, NothingMoreOfAProcessIsTried) {
  SimClient* liar = ConnectParked("liar");
  for (int i = 0; i < 40; ++i) Lease(liar, kLease);
  RunFor(seconds(1));
  for (int i = 0; i < 20; ++i) Lease(ConnectParked("idle"), kLease);
  SimClient* owner = world_.Connect("owner");
  Ask(owner, 20, 60);
  RunFor(seconds(3));
  EXPECT_EQ(owner->granted, 1u);
  EXPECT_EQ(Unanswered("liar"), 1u);
  EXPECT_EQ(world_.problem(), "");
}

TEST_F(MachineLiarsTest, ABorrowerKillsNobodyWhileParkedMemoryWouldDo) {
  SetTenant("liar", 0, /*may_terminate=*/true);
  SetTenant("owner");
  for (int i = 0; i < 20; ++i) Lease(ConnectParked("liar"), kLease);
  RunFor(seconds(1));
  for (int i = 0; i < 40; ++i) Lease(ConnectParked("idle"), kLease);
  SimClient* borrower = world_.Connect("owner");
  Ask(borrower, 20, 60);
  RunFor(seconds(10));
  EXPECT_EQ(borrower->granted, 1u);
  EXPECT_EQ(killed_, 0);
  // A guarantee does.
  SetTenant("owner", 128);
  SimClient* owner = world_.Connect("owner");
  Ask(owner, kLease, 60);
  RunFor(seconds(1));
  EXPECT_EQ(owner->granted, 1u);
  EXPECT_EQ(killed_, 1);
  EXPECT_EQ(world_.problem(), "");
}

// It owes the answer for its first lease.
class MachineDebtTest : public MachineLiarsTest {
 protected:
  void SetUp() override {
    other_ = ConnectParked("liar");
    away_ = Lease(other_, kLease);
    debtor_ = ConnectParked("liar");
    Reclaim(kLease);
    Unmap(other_);  // in time
    RunDevice();
    ASSERT_TRUE(world_.state().engine->Lease(away_)->evicted);
    kept_ = Lease(debtor_, kLease);
    ASSERT_FALSE(IsHard(kept_));
    Reclaim(kLease);
    RunFor(seconds(3));
    ASSERT_TRUE(IsHard(kept_));
  }
  // All of the tenant's; nobody answers yet.
  void Reclaim(uint64_t granules) {
    v1::ReclaimRequest request;
    request.set_tenant("liar");
    request.set_bytes(granules * kGranule);
    world_.Do("reclaim", [&](Turn& turn) {
      ASSERT_TRUE(world_.machine()
                      .operators()
                      .StartReclaim(
                          request,
                          [](const absl::StatusOr<v1::ReclaimResponse>&) {},
                          turn)
                      .ok());
    });
    while (world_.StepCopy(/*out=*/true, /*fail=*/false)) {
    }
  }

  SimClient* debtor_ = nullptr;
  SimClient* other_ = nullptr;
  quota::LeaseId kept_;
  quota::LeaseId away_;
};

TEST_F(MachineDebtTest, ATenantThatOwesAnAnswerGetsNoNewSoftCredit) {
  SimClient* third = ConnectParked("liar");
  const quota::LeaseId made = Lease(third, kLease);
  EXPECT_TRUE(IsHard(made));
  SimClient* idle = ConnectParked("idle");
  EXPECT_FALSE(IsHard(Lease(idle, kLease))) << "it is another's debt";
  // Nor by turning a gate on.
  SimClient* fourth = world_.Connect("liar");
  const quota::LeaseId of_fourth = Lease(fourth, kLease);
  v1::ClientMessage on;
  on.mutable_set_gate()->set_on(true);
  Send(fourth, on);
  EXPECT_TRUE(IsHard(of_fourth));
  // Until the answer is there.
  Unmap(debtor_);
  EXPECT_FALSE(IsHard(made));
  EXPECT_FALSE(IsHard(of_fourth));
  EXPECT_FALSE(IsHard(Lease(third, kLease)));
  EXPECT_EQ(world_.problem(), "");
}

TEST_F(MachineDebtTest, WhatWaitedSoftIsJudgedAgainWhenItIsGranted) {
  SimClient* third = ConnectParked("liar");
  Unmap(debtor_);
  RunDevice();
  SimClient* holder = world_.Connect("owner");
  const quota::LeaseId blocking = Lease(holder, 128);
  SimClient* idle = ConnectParked("idle");
  idle->cells->word.store(ipc::GateWord(ipc::GateState::kOpen, 1, 2).bits());
  Lease(idle, 126);
  Ask(third, kLease, 60);  // asked for while nothing is owed
  ASSERT_EQ(third->granted, 0u);
  const quota::LeaseId taken = Lease(debtor_, 1);
  Reclaim(1);
  RunFor(seconds(3));
  ASSERT_TRUE(IsHard(taken));
  v1::ClientMessage release;
  release.mutable_release()->set_lease_id(blocking.value);
  world_.HoldSlabs(holder->leases.at(blocking.value), false);
  holder->leases.erase(blocking.value);
  Send(holder, release);
  RunDevice();
  if (third->granted == 1) {
    EXPECT_TRUE(IsHard(quota::LeaseId{third->leases.rbegin()->first}));
  } else {
    EXPECT_EQ(world_.state().engine->waiting(), 1u) << "it waits as a hard one";
  }
  EXPECT_EQ(world_.problem(), "");
}

TEST_F(MachineDebtTest, ItsRestoresStaySoft) {
  v1::ClientMessage restore;
  restore.mutable_restore()->mutable_wait()->set_seconds(10);
  other_->restore = Send(other_, restore);
  RunDevice();
  EXPECT_FALSE(world_.state().engine->Lease(away_)->evicted);
  EXPECT_FALSE(IsHard(away_));
  EXPECT_EQ(world_.problem(), "");
}

TEST_F(MachineDebtTest, AProcessThatEndsOwesNothing) {
  SimClient* third = ConnectParked("liar");
  const quota::LeaseId made = Lease(third, kLease);
  ASSERT_TRUE(IsHard(made));
  world_.Close(debtor_, "gone");
  EXPECT_FALSE(IsHard(made));
  EXPECT_EQ(world_.problem(), "");
}

TEST_F(MachineDebtTest, ARefusalSaysThatAnAnswerIsOwed) {
  SetTenant("owner", kPool - kLease);
  SimClient* third = ConnectParked("liar");
  v1::ClientMessage message;
  message.mutable_acquire()->set_bytes(8 * kLease * kGranule);
  const uint64_t id = Send(third, message);
  const std::optional<v1::BrokerMessage> answer =
      world_.state().SessionAt(third->session).talk->answers.Find(id);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->error().detail().reason(), v1::OVERCOMMITTED);
  EXPECT_NE(answer->error().message().find("does not answer"),
            std::string::npos)
      << answer->error().message();
}

}  // namespace
}  // namespace gmb::broker
