// Clients and operators are told of the state: a tenant's figures, and why
// leases stay.
#include <chrono>
#include <string>
#include <vector>

#include "broker/machine/quota_view.h"
#include "broker/machine/verdict_sentences.h"
#include "broker/machine/verdict_walk.h"
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

using Lines = std::vector<std::string>;

TEST(VerdictSentencesTest, AReasonIsOneSentenceAndThoseThatHoldMostComeFirst) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  EXPECT_EQ(VerdictSentences({{quota::Verdict::kActive, {2, 10 * kMiB}},
                              {quota::Verdict::kYoung, {1, 4 * kMiB}},
                              {quota::Verdict::kGateOff, {1, 16 * kMiB}}}),
            (Lines{"1 lease of 16.0 MiB: the program does not use the gate, or "
                   "another of its group does not",
                   "2 leases of 10.0 MiB: active",
                   "1 lease of 4.0 MiB: resident for too short a time"}));
}

TEST(VerdictSentencesTest, WhatWasTakenOrIsAwayDoesNotStay) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  EXPECT_EQ(VerdictSentences({{quota::Verdict::kTaken, {1, 2 * kMiB}},
                              {quota::Verdict::kEvicted, {1, 4 * kMiB}},
                              {quota::Verdict::kBusy, {1, 8 * kMiB}}}),
            Lines{"1 lease of 8.0 MiB: a step or a copy is under way"});
  EXPECT_EQ(VerdictSentences({}), Lines{});
}

class VerdictWalkTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    SetTenant("c", {.guarantee = 1});
    client = Active("a");
    for (const uint64_t granules : {1, 2, 4, 8})
      leases.push_back(Lease(client, granules));
    Lease(Active("b"), 16);
  }
  // Of all tenants' leases, or of one's; so many are looked at in a slice.
  Lines Sentences(const char* tenant, uint64_t slice = 1000) {
    quota::Demand demand;
    demand.cause =
        tenant == nullptr ? quota::Cause::kBorrow : quota::Cause::kOperator;
    demand.tenant = IdOf(tenant == nullptr ? "c" : tenant);
    demand.needs = {{kPool, 64 * kGranule}};
    demand.deadline = world.now();
    VerdictWalk walk(demand);
    while (!walk.GoOn(state(), world.now(), slice)) ++slices;
    return walk.Finish(state(), world.now()).sentences;
  }
  SimClient* client = nullptr;
  std::vector<quota::LeaseId> leases;
  int slices = 0;
};

TEST_F(VerdictWalkTest, OnlyTheTenantsOwnAreNamedToIt) {
  EXPECT_EQ(Sentences("a"), Lines{"4 leases of 30.0 MiB: active"});
  EXPECT_EQ(Sentences("b"), Lines{"1 lease of 32.0 MiB: active"});
  EXPECT_EQ(Sentences(nullptr), Lines{"5 leases of 62.0 MiB: active"});
}

TEST_F(VerdictWalkTest, ASliceEndsAnywhereAndNoLeaseIsCountedTwice) {
  SimClient* writer = Active("a");
  Lease(writer, 2, {.share_as = "w"});
  for (const uint64_t slice : {3, 4, 7}) {
    slices = 0;
    EXPECT_EQ(Sentences(nullptr, slice), Lines{"6 leases of 66.0 MiB: active"})
        << slice;
    EXPECT_GT(slices, 1) << slice;
  }
}

TEST_F(VerdictWalkTest, ALeaseThatHasEndedMeanwhileIsNotCounted) {
  quota::Demand demand;
  demand.cause = quota::Cause::kOperator;
  demand.tenant = IdOf("a");
  demand.needs = {{kPool, 64 * kGranule}};
  demand.deadline = world.now();
  VerdictWalk walk(demand);
  ASSERT_FALSE(walk.GoOn(state(), world.now(), 3));
  Release(client, leases[3]);
  while (!walk.GoOn(state(), world.now(), 3)) {
  }
  EXPECT_EQ(walk.Finish(state(), world.now()).sentences,
            Lines{"3 leases of 14.0 MiB: active"});
}

}  // namespace
}  // namespace gmb::broker
