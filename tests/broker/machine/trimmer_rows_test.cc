// However many sessions say that they could give something back, a plan sees
// those that can, sooner or later, and looks at few at a time.
#include "broker/machine/trimmer_rows.h"

#include <chrono>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TrimmerRowsTest : public MachineFixture {
 protected:
  TrimmerRowsTest() : MachineFixture({.granules = 256}) {}
  void SetUp() override {
    world.CheckEvery(64);
    SetTenant("a");
    SetTenant("b");
  }
  // Sessions that say they could give a granule, with a lease of so many.
  std::vector<SimClient*> Trimmers(const std::string& tenant, size_t count,
                                   uint64_t granules) {
    std::vector<SimClient*> trimmers;
    for (size_t i = 0; i < count; ++i) {
      trimmers.push_back(Parked(tenant));
      if (granules > 0) Lease(trimmers.back(), granules);
      SetTrimmable(trimmers.back(), 1);
    }
    return trimmers;
  }
  struct Seen {
    std::vector<uint64_t> sessions;
    uint64_t next = 0;
    uint64_t looks = 0;
  };
  Seen SeenFrom(uint64_t from, const quota::Demand& demand = {}) {
    std::vector<quota::LeaseRow> leases;
    TrimmerRows rows(state(), kPool, world.now(), &leases);
    rows.Add(demand, from);
    Seen seen{.sessions = {}, .next = rows.next(), .looks = rows.looks()};
    for (const quota::LeaseRow& row : leases) {
      EXPECT_EQ(row.trimmable_bytes, kGranule);
      seen.sessions.push_back(row.session.value);
    }
    return seen;
  }
};

TEST_F(TrimmerRowsTest, OnesWithoutLeasesHideNobody) {
  Trimmers("b", TrimmerRows::kMostSeen, 0);
  SimClient* honest = Trimmers("a", 1, 250)[0];
  Ask(Connect("b"), 10, {.wait = seconds(60)});
  RunFor(milliseconds(1100));  // its claim holds
  EXPECT_EQ(Told(honest, v1::BrokerMessage::kTrim), 1u);
}

TEST_F(TrimmerRowsTest, WhereThereAreMoreTheNextPlanSeesTheOthers) {
  const std::vector<SimClient*> all = Trimmers("a", 130, 1);
  const Seen first = SeenFrom(0);
  ASSERT_EQ(first.sessions.size(), TrimmerRows::kMostSeen);
  EXPECT_EQ(first.sessions[0], all[0]->session);
  EXPECT_EQ(first.next, all[128]->session);
  const Seen second = SeenFrom(first.next);
  ASSERT_EQ(second.sessions.size(), TrimmerRows::kMostSeen);
  EXPECT_EQ(second.sessions[0], all[128]->session);
  EXPECT_EQ(second.sessions[1], all[129]->session);
  EXPECT_EQ(second.sessions[2], all[0]->session);
  EXPECT_EQ(second.next, all[126]->session);
}

TEST_F(TrimmerRowsTest, APlanSaysWhereTheNextOneBegins) {
  const std::vector<SimClient*> all = Trimmers("a", 130, 1);
  Lease(Connect("a"), 120);
  Ask(Connect("b"), 10, {.wait = seconds(60)});
  RunFor(milliseconds(1100));
  size_t asked = 0;
  for (const SimClient* one : all) asked += Told(one, v1::BrokerMessage::kTrim);
  EXPECT_GT(asked, 0u);
  EXPECT_GT(state().PoolAt(kPool).plan->trimmers_from, all[0]->session);
}

// A plan that sees others still counts on those that were asked.
TEST_F(TrimmerRowsTest, EachPlanSeesThoseThatWereAsked) {
  const std::vector<SimClient*> all = Trimmers("a", 200, 1);
  Lease(Connect("a"), 50);
  Ask(Connect("b"), 10, {.wait = seconds(60)});
  for (int i = 0; i < 2000 && state().trimming->empty(); ++i)
    world.Advance(milliseconds(1));
  const size_t asked = state().trimming->size();
  ASSERT_GT(asked, 0u);
  for (const uint64_t from : {uint64_t{0}, all[100]->session}) {
    std::vector<quota::LeaseRow> leases;
    TrimmerRows rows(state(), kPool, world.now(), &leases);
    rows.Add({}, from);
    uint64_t counted_bytes = 0;
    size_t others = 0;
    for (const quota::LeaseRow& row : leases) {
      counted_bytes += row.trimming_bytes;
      others += row.trimmable_bytes > 0 ? 1 : 0;
    }
    EXPECT_EQ(counted_bytes, asked * kGranule);
    EXPECT_EQ(others, TrimmerRows::kMostSeen);
  }
}

class TrimmerOfTwoPoolsTest : public MachineFixture {
 protected:
  TrimmerOfTwoPoolsTest() : MachineFixture({.pools = 2, .granules = 64}) {}
  void Say(SimClient* client) {
    v1::ClientMessage message;
    for (const char* device : {"sim-1", "sim-2"}) {
      auto* on = message.mutable_set_trimmable()->add_devices();
      on->set_device(device);
      on->set_bytes(10 * kGranule);
    }
    Notify(client, message);
  }
};

// Nothing of the second pool can be asked for while the first one's is under way.
TEST_F(TrimmerOfTwoPoolsTest, WhoHasTrimmedInOneIsLookedAtInTheOther) {
  SetTenant("a");
  SetTenant("b");
  SimClient* one = Parked("a");
  Lease(one, 60, {.device = "sim-1"});
  Lease(one, 60, {.device = "sim-2"});
  Say(one);
  Ask(Connect("b"), 10, {.wait = seconds(60), .device = "sim-1"});
  for (int i = 0; i < 2000 && state().trimming->empty(); ++i)
    world.Advance(milliseconds(1));
  ASSERT_EQ(state().trimming->size(), 1u);
  Say(one);  // as before
  const uint64_t gains = Index().gains(quota::PoolId{2});
  Trimmed(one);
  EXPECT_TRUE(state().trimming->empty());
  EXPECT_GT(Index().gains(quota::PoolId{2}), gains);
}

TEST_F(TrimmerRowsTest, WhereAllAreSeenEachPlanBeginsWithTheFirst) {
  EXPECT_EQ(SeenFrom(0).next, 0u);
  const std::vector<SimClient*> all = Trimmers("a", 3, 1);
  const Seen seen = SeenFrom(0);
  EXPECT_EQ(seen.sessions.size(), 3u);
  EXPECT_EQ(seen.next, 0u);
  EXPECT_EQ(SeenFrom(all[2]->session + 1).sessions, seen.sessions);
}

TEST_F(TrimmerRowsTest, LeasesThatAreSharedAreNotLookedAt) {
  SimClient* writer = Parked("a");
  SimClient* reader = Parked("a");
  for (int i = 0; i < 40; ++i) {
    const std::string name = "w" + std::to_string(i);
    Lease(writer, 1, {.share_as = name});
    ASSERT_EQ(Outcome(reader, Attach(reader, name)), "attached");
  }
  SetTrimmable(writer, 1);
  SetTrimmable(reader, 1);
  EXPECT_TRUE(SeenFrom(0).sessions.empty());
  EXPECT_EQ(SeenFrom(0).looks, 2u);
  Lease(reader, 1);
  EXPECT_EQ(SeenFrom(0).sessions, std::vector<uint64_t>{reader->session});
  EXPECT_EQ(SeenFrom(0).looks, 3u);
}

TEST_F(TrimmerRowsTest, OfADemandOfOneTenantOthersAreNotLookedAt) {
  Trimmers("b", 140, 1);
  SimClient* its = Trimmers("a", 1, 1)[0];
  quota::Demand demand;
  demand.cause = quota::Cause::kOperator;
  demand.tenant = IdOf("a");
  const Seen seen = SeenFrom(0, demand);
  EXPECT_EQ(seen.sessions, std::vector<uint64_t>{its->session});
  EXPECT_EQ(seen.looks, 2u);
}

// Each message that says more has a plan made, as far as the budget goes.
TEST_F(TrimmerRowsTest, LooksAtThemAreOfTheSameBudgetAsLooksAtLeases) {
  const std::vector<SimClient*> idle = Trimmers("b", 300, 0);
  Lease(Connect("a"), 250);  // nobody can take it
  Ask(Connect("b"), 10, {.wait = seconds(60)});
  RunFor(milliseconds(1100));
  const uint64_t before = LookAt().times();
  for (uint64_t i = 2; i < 100; ++i) SetTrimmable(idle[0], i);
  EXPECT_GT(LookAt().times(), before);
  EXPECT_LT(LookAt().times(), before + 20);
}

TEST_F(TrimmerRowsTest, ALongListOfDevicesIsCut) {
  SimClient* client = Parked("a");
  Lease(client, 1);
  v1::ClientMessage message;
  for (int i = 0; i < 64; ++i)
    message.mutable_set_trimmable()->add_devices()->set_device("none");
  auto* last = message.mutable_set_trimmable()->add_devices();
  last->set_device("sim-1");
  last->set_bytes(kGranule);
  Notify(client, message);
  EXPECT_TRUE(SeenFrom(0).sessions.empty());
  message.mutable_set_trimmable()->mutable_devices()->SwapElements(63, 64);
  Notify(client, message);
  EXPECT_EQ(SeenFrom(0).sessions, std::vector<uint64_t>{client->session});
}

TEST_F(TrimmerRowsTest, OnlyOneThatSaysMoreChangesSomething) {
  SimClient* client = Parked("a");
  Lease(client, 8);
  v1::ClientMessage message;
  for (int i = 0; i < 64; ++i) {
    auto* on = message.mutable_set_trimmable()->add_devices();
    on->set_device("sim-1");
    on->set_bytes(4 * kGranule);
  }
  const uint64_t before = Index().changes(kPool);
  Notify(client, message);
  const uint64_t said = Index().gains(kPool);
  EXPECT_GT(said, before);
  EXPECT_LE(said, before + 2) << "the tenant's mark, and the pool's";
  SetTrimmable(client, 4);
  SetTrimmable(client, 2);
  SetTrimmable(client, 0);
  EXPECT_EQ(Index().gains(kPool), said);
  SetTrimmable(client, 1);
  EXPECT_GT(Index().gains(kPool), said);
}

}  // namespace
}  // namespace gmb::broker
