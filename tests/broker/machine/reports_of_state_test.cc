// What clients and operators are told of the state: a tenant's figures, and
// why leases stay.
#include <chrono>
#include <string>
#include <vector>

#include "broker/machine/quota_view.h"
#include "broker/machine/verdict_sentences.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;

class QuotaViewTest : public MachineFixture {
 protected:
  v1::QuotaView ViewOf(const std::string& tenant) {
    return View(state(), IdOf(tenant), state().PoolAt(kPool));
  }
};

TEST_F(QuotaViewTest, ATenantSeesItsOwnFigures) {
  SetTenant("a", {.guarantee = 10, .limit = 40, .weight = 2.5});
  SimClient* idle = Parked("a");
  Lease(idle, 20);
  v1::QuotaView view = ViewOf("a");
  EXPECT_EQ(view.device(), "sim-1");
  EXPECT_EQ(view.pool_bytes(), 64 * kGranule);
  EXPECT_EQ(view.guarantee_bytes(), 10 * kGranule);
  EXPECT_EQ(view.limit_bytes(), 40 * kGranule);
  EXPECT_EQ(view.weight(), 2.5);
  EXPECT_EQ(view.leased_bytes(), 20 * kGranule);
  EXPECT_EQ(view.evicted_bytes(), 0u);
  EXPECT_EQ(view.obtainable_bytes(), 20 * kGranule);
  Reclaim("a");
  Work();
  view = ViewOf("a");
  EXPECT_EQ(view.leased_bytes(), 20 * kGranule) << "evicted ones included";
  EXPECT_EQ(view.evicted_bytes(), 20 * kGranule);
  EXPECT_EQ(view.over_limit_bytes(), 0u);
}

TEST_F(QuotaViewTest, TheGuaranteeIsTheOneInForce) {
  SetTenant("b");
  Lease(Connect("b"), 50);
  SetTenant("a", {.guarantee = 30});
  EXPECT_EQ(ViewOf("a").guarantee_bytes(), 14 * kGranule);
}

TEST_F(QuotaViewTest, WhatIsObtainableIsWhatARequestWithoutAWaitGets) {
  SetTenant("a", {.limit = 40});
  SetTenant("owner", {.guarantee = 32});
  SimClient* client = Connect("a");
  const uint64_t most = ViewOf("a").obtainable_bytes() / kGranule;
  EXPECT_EQ(most, 32u) << "a hard one leaves the guarantee alone";
  EXPECT_NE(Outcome(client, Ask(client, most + 1)), "granted");
  RunDevice();
  EXPECT_NE(Lease(client, most).value, 0u);
  EXPECT_EQ(ViewOf("a").obtainable_bytes(), 0u);
}

class VerdictSentencesTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    client = Connect("a");
    for (const uint64_t granules : {1, 2, 4, 8})
      leases.push_back(Lease(client, granules));
    of_b = Lease(Connect("b"), 16);
  }
  std::vector<std::string> Sentences(
      const std::vector<quota::LeaseVerdict>& why, const char* tenant = "a") {
    return VerdictSentences(
        state(), why,
        tenant == nullptr ? std::nullopt : std::optional(IdOf(tenant)));
  }
  SimClient* client = nullptr;
  std::vector<quota::LeaseId> leases;
  quota::LeaseId of_b;
};

using Lines = std::vector<std::string>;

TEST_F(VerdictSentencesTest,
       AReasonIsOneSentenceAndThoseThatHoldMostComeFirst) {
  EXPECT_EQ(Sentences({{leases[0], quota::Verdict::kActive},
                       {leases[1], quota::Verdict::kYoung},
                       {leases[2], quota::Verdict::kActive},
                       {leases[3], quota::Verdict::kGateOff}}),
            (Lines{"1 lease of 16.0 MiB: the program does not use the gate",
                   "2 leases of 10.0 MiB: active",
                   "1 lease of 4.0 MiB: resident for too short a time"}));
}

TEST_F(VerdictSentencesTest, WhatWasTakenOrIsAwayDoesNotStay) {
  EXPECT_EQ(Sentences({{leases[0], quota::Verdict::kTaken},
                       {leases[1], quota::Verdict::kEvicted},
                       {leases[2], quota::Verdict::kBusy}}),
            Lines{"1 lease of 8.0 MiB: a step or a copy is under way"});
  EXPECT_EQ(Sentences({}), Lines{});
}

TEST_F(VerdictSentencesTest, OnlyTheTenantsOwnAreNamedToIt) {
  const std::vector<quota::LeaseVerdict> why = {
      {leases[0], quota::Verdict::kActive}, {of_b, quota::Verdict::kActive}};
  EXPECT_EQ(Sentences(why), Lines{"1 lease of 2.0 MiB: active"});
  EXPECT_EQ(Sentences(why, "b"), Lines{"1 lease of 32.0 MiB: active"});
  EXPECT_EQ(Sentences(why, nullptr), Lines{"2 leases of 34.0 MiB: active"});
}

TEST_F(VerdictSentencesTest, ALeaseThatHasEndedMeanwhileIsNotCounted) {
  Release(client, leases[3]);
  EXPECT_EQ(Sentences({{leases[3], quota::Verdict::kActive},
                       {quota::LeaseId{999}, quota::Verdict::kActive},
                       {leases[0], quota::Verdict::kActive}}),
            Lines{"1 lease of 2.0 MiB: active"});
}

}  // namespace
}  // namespace gmb::broker
