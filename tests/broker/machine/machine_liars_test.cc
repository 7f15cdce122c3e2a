// Clients that do not answer when they are told to give memory back: what that
// costs others, and what it costs them.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;

constexpr uint64_t kAll = 256;  // granules of the pool
constexpr uint64_t kLease = 4;

class MachineLiarsTest : public MachineFixture {
 protected:
  MachineLiarsTest()
      : MachineFixture({.granules = kAll, .host_granules = 2 * kAll}) {
    SetTenant("liar");
    SetTenant("idle");
    SetTenant("owner", {.guarantee = 128});
  }
  // It follows no orders.
  SimClient* Liar() {
    SimClient* liar = Parked("liar");
    stubborn.insert(liar);
    return liar;
  }
  uint64_t AskFor(SimClient* client, uint64_t granules) {
    const uint64_t id = Ask(client, granules, {.wait = seconds(60)});
    RunDevice();
    return id;
  }
  // Evicts that are told to the tenant's processes and are not answered.
  size_t Unanswered(const std::string& tenant) {
    size_t moves = 0;
    for (const SimClient* client : world.clients())
      moves += client->tenant == tenant ? client->moves.size() : 0;
    return moves;
  }
};

TEST_F(MachineLiarsTest, SixtyOfThemDelayAGuaranteeByTenSecondsAtMost) {
  SetTenant("liar", {.may_terminate = true});
  for (int process = 0; process < 20; ++process) {
    SimClient* liar = Liar();
    for (int i = 0; i < 3; ++i) Lease(liar, kLease);
  }
  SimClient* owner = Connect("owner");
  // 16 granules are free: it lacks three leases.
  AskFor(owner, 28);
  RunFor(seconds(10));
  EXPECT_EQ(owner->granted, 1u);
  EXPECT_GT(killed, 0);
  EXPECT_LE(killed, 3);
}

TEST_F(MachineLiarsTest, OneAtATimeTheyDelayItAsLittle) {
  SetTenant("liar", {.may_terminate = true});
  for (int i = 0; i < 60; ++i) Lease(Liar(), kLease);
  SimClient* owner = Connect("owner");
  AskFor(owner, 20);  // it lacks one
  RunFor(seconds(6));
  EXPECT_LE(Unanswered("liar"), 3u) << "of one tenant three are tried";
  RunFor(seconds(4));
  EXPECT_EQ(owner->granted, 1u);
  EXPECT_LE(killed, 2);
}

TEST_F(MachineLiarsTest, OthersAreAskedAfterThreeOfATenantThatMayNotBeKilled) {
  for (int i = 0; i < 40; ++i) Lease(Liar(), kLease);
  RunFor(seconds(1));  // the liars are the longest idle
  for (int i = 0; i < 20; ++i) Lease(Parked("idle"), kLease);
  SimClient* owner = Connect("owner");
  AskFor(owner, 20);
  RunFor(seconds(8));
  EXPECT_EQ(owner->granted, 1u);
  EXPECT_EQ(Unanswered("liar"), 3u);
  EXPECT_EQ(killed, 0);
}

TEST_F(MachineLiarsTest, NothingMoreOfAProcessIsTried) {
  SimClient* liar = Liar();
  for (int i = 0; i < 40; ++i) Lease(liar, kLease);
  RunFor(seconds(1));
  for (int i = 0; i < 20; ++i) Lease(Parked("idle"), kLease);
  SimClient* owner = Connect("owner");
  AskFor(owner, 20);
  RunFor(seconds(3));
  EXPECT_EQ(owner->granted, 1u);
  EXPECT_EQ(Unanswered("liar"), 1u);
}

// Its bytes are hard once it is overdue, more than the sum of guarantees has
// room for. Memory that others have borrowed still serves the guarantee.
TEST_F(MachineLiarsTest,
       OneLargeLeaseThatIsKeptLeavesTheOthersToServeAGuarantee) {
  const quota::LeaseId kept = Lease(Liar(), 160);
  RunFor(seconds(1));
  std::vector<quota::LeaseId> parked;
  for (int i = 0; i < 20; ++i) parked.push_back(Lease(Parked("idle"), kLease));
  SimClient* owner = Connect("owner");
  AskFor(owner, 28);  // 16 are free
  RunFor(seconds(8));
  EXPECT_TRUE(IsHard(kept));
  EXPECT_GT(InPool().broken_bytes, 0u);
  EXPECT_EQ(owner->granted, 1u);
  EXPECT_EQ(std::count_if(parked.begin(), parked.end(),
                          [this](quota::LeaseId lease) {
                            return Where(lease) == "evicted";
                          }),
            3)
      << "no more than it lacked";
}

TEST_F(MachineLiarsTest, ABorrowerKillsNobodyWhileParkedMemoryWouldDo) {
  SetTenant("liar", {.may_terminate = true});
  SetTenant("owner");
  for (int i = 0; i < 20; ++i) Lease(Liar(), kLease);
  RunFor(seconds(1));
  for (int i = 0; i < 40; ++i) Lease(Parked("idle"), kLease);
  SimClient* borrower = Connect("owner");
  AskFor(borrower, 20);
  RunFor(seconds(10));
  EXPECT_EQ(borrower->granted, 1u);
  EXPECT_EQ(killed, 0);
  // A guarantee does.
  SetTenant("owner", {.guarantee = 128});
  SimClient* owner = Connect("owner");
  AskFor(owner, kLease);
  RunFor(seconds(1));
  EXPECT_EQ(owner->granted, 1u);
  EXPECT_EQ(killed, 1);
}

TEST_F(MachineLiarsTest, WhatOneKeepsThatCannotBeKilledIsHard) {
  SetTenant("liar", {.may_terminate = true});
  SimClient* liar = Liar();
  const quota::LeaseId kept = Lease(liar, kLease);
  Lease(Active("idle"), 244);
  SimClient* owner = Connect("owner");
  AskFor(owner, 12);
  RunFor(seconds(3));
  ASSERT_EQ(Unanswered("liar"), 1u);
  ASSERT_FALSE(IsHard(kept)) << "it may be killed for it";
  world.Do("kill", [&](Turn& turn) {
    world.machine().debts().OnKilled({liar->session, nullptr, {}},
                                     absl::PermissionDeniedError("no"), turn);
  });
  EXPECT_TRUE(IsHard(kept));
  EXPECT_EQ(Events("not_terminated").size(), 1u);
  RunFor(seconds(20));
  EXPECT_EQ(killed, 0) << "nobody tries again";
}

// It owes the answer for its first lease.
class MachineDebtTest : public MachineLiarsTest {
 protected:
  void SetUp() override {
    other_ = Liar();
    away_ = Lease(other_, kLease);
    debtor_ = Liar();
    TakeBack(kLease);
    Follow(other_);  // in time
    RunDevice();
    ASSERT_EQ(Where(away_), "evicted");
    kept_ = Lease(debtor_, kLease);
    ASSERT_FALSE(IsHard(kept_));
    TakeBack(kLease);
    RunFor(seconds(3));
    ASSERT_TRUE(IsHard(kept_));
  }
  // All of the tenant's; nobody answers yet.
  void TakeBack(uint64_t granules) {
    Reclaim("liar", granules);
    RunCopies();
  }

  SimClient* debtor_ = nullptr;
  SimClient* other_ = nullptr;
  quota::LeaseId kept_;
  quota::LeaseId away_;
};

TEST_F(MachineDebtTest, ATenantThatOwesAnAnswerGetsNoNewSoftCredit) {
  SimClient* third = Liar();
  const quota::LeaseId made = Lease(third, kLease);
  EXPECT_TRUE(IsHard(made));
  SimClient* idle = Parked("idle");
  EXPECT_FALSE(IsHard(Lease(idle, kLease))) << "it is another's debt";
  // Nor by turning a gate on.
  SimClient* fourth = Connect("liar");
  const quota::LeaseId of_fourth = Lease(fourth, kLease);
  SetGate(fourth, true);
  EXPECT_TRUE(IsHard(of_fourth));
  // Until the answer is there.
  Follow(debtor_);
  EXPECT_FALSE(IsHard(made));
  EXPECT_FALSE(IsHard(of_fourth));
  EXPECT_FALSE(IsHard(Lease(third, kLease)));
}

TEST_F(MachineDebtTest, WhatWaitedHardIsServedWhenTheAnswerIsThere) {
  Lease(Connect("idle"), 100);  // hard, so 24 of them are left to borrow
  SimClient* third = Liar();
  const uint64_t id = AskFor(third, 40);
  RunFor(seconds(1));
  ASSERT_EQ(Outcome(third, id), "waits");
  Follow(debtor_);
  RunDevice();
  EXPECT_EQ(Outcome(third, id), "granted");
}

TEST_F(MachineDebtTest, WhatWaitedSoftIsJudgedAgainWhenItIsGranted) {
  SimClient* third = Liar();
  Follow(debtor_);
  RunDevice();
  SimClient* holder = Connect("owner");
  const quota::LeaseId blocking = Lease(holder, 128);
  SimClient* idle = Parked("idle");
  ASSERT_TRUE(Enter(idle));
  Lease(idle, 126);
  AskFor(third, kLease);  // asked for while nothing is owed
  ASSERT_EQ(third->granted, 0u);
  const quota::LeaseId taken = Lease(debtor_, 1);
  TakeBack(1);
  RunFor(seconds(3));
  ASSERT_TRUE(IsHard(taken));
  Release(holder, blocking);
  RunDevice();
  if (third->granted == 1) {
    EXPECT_TRUE(IsHard(quota::LeaseId{third->leases.rbegin()->first}));
  } else {
    EXPECT_EQ(Waiting(), 1u) << "it waits as a hard one";
  }
}

TEST_F(MachineDebtTest, ItsRestoresStaySoft) {
  Restore(other_);
  RunDevice();
  EXPECT_FALSE(LeaseView(away_).evicted);
  EXPECT_FALSE(IsHard(away_));
}

TEST_F(MachineDebtTest, AProcessThatEndsOwesNothing) {
  SimClient* third = Liar();
  const quota::LeaseId made = Lease(third, kLease);
  ASSERT_TRUE(IsHard(made));
  End(debtor_);
  EXPECT_FALSE(IsHard(made));
}

TEST_F(MachineDebtTest, ARefusalSaysThatAnAnswerIsOwed) {
  SetTenant("owner", {.guarantee = kAll - kLease});
  SimClient* third = Liar();
  const uint64_t id = Ask(third, 8 * kLease);
  EXPECT_EQ(Outcome(third, id), "OVERCOMMITTED");
  const std::string said = AnswerTo(third, id).error().message();
  EXPECT_NE(said.find("does not answer"), std::string::npos) << said;
}

// Turns go by, and its debt is not looked at in each of them.
TEST_F(MachineDebtTest, WhoNeverAnswersCostsNothingUntilSomethingChanges) {
  ASSERT_EQ(state().owed->Keys().size(), 1u);
  ReclaimIndex index = Index();
  EXPECT_TRUE(index.TakeLate().empty());
  Follow(debtor_);
  EXPECT_TRUE(state().owed->Keys().empty());
}

}  // namespace
}  // namespace gmb::broker
