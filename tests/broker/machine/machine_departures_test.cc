// Tenants that are deleted while they have sessions (docs/cli.md, "gmb tenant
// delete"; docs/reclaim.md).
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineDeparturesTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
  }
  // Empty: it is not answered.
  static std::string Answer(const std::shared_ptr<Departed>& departure) {
    return departure->has_value() ? ReasonOf(**departure) : "";
  }
  std::string TryToCome(const std::string& tenant) {
    return ReasonOf(world.Open(PeerOf(tenant)).status());
  }
};

TEST_F(MachineDeparturesTest, OneWithoutSessionsHasLeftAtOnce) {
  const auto departure = Depart("a", seconds(60));
  EXPECT_EQ(Answer(departure), "OK");
  EXPECT_EQ(TryToCome("a"), "DRAINING") << "nobody comes before it is deleted";
  EXPECT_TRUE(Delete("a").ok());
  EXPECT_EQ(TryToCome("a"), "NO_SUCH_TENANT");
}

TEST_F(MachineDeparturesTest, ALeaseThatIsBeingMadeIsWaitedFor) {
  SimClient* client = Connect("a");
  ASSERT_EQ(Outcome(client, Ask(client, 64)), "nothing") << "a slab is made";
  End(client);
  EXPECT_EQ(ReasonOf(world.machine().operators().BeginDelete("a").status()),
            "BAD_STATE");
  const auto early = Depart("a", milliseconds(1));
  world.Advance(milliseconds(2));
  ASSERT_EQ(Answer(early), "BAD_STATE");
  EXPECT_NE((*early)->message().find("its sessions have ended"),
            std::string::npos)
      << **early;
  const auto departure = Depart("a", seconds(60));
  EXPECT_EQ(Answer(departure), "");
  RunDevice();
  EXPECT_EQ(Answer(departure), "OK");
  EXPECT_TRUE(Delete("a").ok());
}

TEST_F(MachineDeparturesTest, ANewStreamIsToldHowLongItIsWaitedForYet) {
  SimClient* leaving = Connect("a");
  SimClient* other = Connect("b");
  NewStream(leaving);
  EXPECT_TRUE(leaving->said.empty() || !leaving->said.back().has_draining());
  const auto departure = Depart("a", seconds(60));
  world.Advance(seconds(20));
  for (SimClient* client : {leaving, other}) {
    client->said.clear();
    NewStream(client);
  }
  ASSERT_FALSE(leaving->said.empty()) << "the last stream may have lost it";
  ASSERT_TRUE(leaving->said.back().has_draining());
  EXPECT_EQ(leaving->said.back().draining().remaining().seconds(), 40);
  EXPECT_TRUE(other->said.empty()) << "its tenant stays";
  EXPECT_EQ(Answer(departure), "");
}

// The deletion is on its way to the disk, which may refuse it.
TEST_F(MachineDeparturesTest, NobodyComesToOneThatIsBeingDeleted) {
  OperatorDesk& desk = world.machine().operators();
  const auto begun = desk.BeginDelete("a");
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_TRUE(*begun);
  EXPECT_EQ(TryToCome("a"), "DRAINING");
  const auto again = desk.BeginDelete("a");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(*again) << "that is so already";
  world.Do("stays", [&](Turn& turn) { desk.EndDeparture("a", turn); });
  EXPECT_EQ(TryToCome("a"), "OK");
  EXPECT_EQ(ReasonOf(desk.BeginDelete("a").status()), "BAD_STATE");
  EXPECT_EQ(TryToCome("a"), "OK");
}

TEST_F(MachineDeparturesTest, ItsSessionsAreToldAndGetNothingMore) {
  SimClient* holder = Parked("b");
  Lease(holder, 60);
  EXPECT_TRUE(Enter(holder));
  SimClient* client = Connect("a");
  const uint64_t waiting = Ask(client, 20, {.wait = seconds(60)});
  const uint64_t named =
      Ask(client, 10, {.wait = seconds(60), .share_as = "w"});
  SimClient* reader = Connect("a");
  const uint64_t attach = Attach(reader, "w", seconds(60));
  const auto departure = Depart("a", seconds(30));
  ASSERT_EQ(Told(client, v1::BrokerMessage::kDraining), 1u);
  for (const v1::BrokerMessage& message : client->said) {
    if (message.has_draining()) {
      EXPECT_EQ(message.draining().remaining().seconds(), 30);
    }
  }
  EXPECT_EQ(Told(holder, v1::BrokerMessage::kDraining), 0u);
  EXPECT_EQ(Outcome(client, waiting), "DRAINING");
  EXPECT_EQ(Outcome(client, named), "DRAINING");
  EXPECT_NE(Outcome(reader, attach), "waits");
  EXPECT_EQ(Outcome(client, Ask(client, 1)), "DRAINING");
  EXPECT_EQ(Outcome(client, Attach(client, "w")), "DRAINING");
  EXPECT_EQ(TryToCome("a"), "DRAINING");
  EXPECT_EQ(TryToCome("b"), "OK");
  EXPECT_EQ(Answer(departure), "");
}

TEST_F(MachineDeparturesTest, ItHasLeftWhenItsLastSessionHasEnded) {
  SimClient* one = Connect("a");
  SimClient* two = Connect("a");
  Lease(two, 10);
  const auto departure = Depart("a", seconds(30));
  End(one);
  EXPECT_EQ(Answer(departure), "");
  End(two);
  EXPECT_EQ(Answer(departure), "OK");
  EXPECT_TRUE(Delete("a").ok());
}

TEST_F(MachineDeparturesTest, WhatIsParkedIsTakenWhereItLies) {
  SetTenant("a", {.guarantee = 20, .min_residency = seconds(3600)});
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 10);
  SimClient* busy = Active("a");
  const quota::LeaseId used = Lease(busy, 10);
  Depart("a", seconds(30));
  Work();
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(Where(used), "mapped");
  Park(busy);
  RunFor(milliseconds(100));
  EXPECT_EQ(Where(used), "evicted");
}

// docs/configuration.md, "Reload": what is evicted is a process's all the same.
TEST_F(MachineDeparturesTest, TheFileTakesNoTenantWhoseMemoryIsEvicted) {
  SetTenant("b", {.guarantee = 32});
  const quota::LeaseId lease = Lease(Parked("a"), 40);
  Ask(Connect("b"), 32, {.wait = seconds(60)});
  Work();
  ASSERT_EQ(Where(lease), "evicted");
  world.Do("file", [&](Turn& turn) {
    const auto held = world.machine().operators().ApplyFile(
        {.tenants = {}, .leaving = {"a"}}, turn);
    ASSERT_TRUE(held.ok()) << held.status();
    ASSERT_EQ(held->size(), 1u);
    EXPECT_EQ(held->front().tenant, "a");
  });
}

TEST_F(MachineDeparturesTest, WhoDoesNotEndKeepsItsTenantByDefault) {
  SimClient* client = Connect("a");
  const quota::LeaseId lease = Lease(client, 10);
  const auto departure = Depart("a", seconds(5));
  RunFor(milliseconds(4900));
  EXPECT_EQ(Answer(departure), "");
  RunFor(milliseconds(200));
  EXPECT_EQ(Answer(departure), "BAD_STATE");
  EXPECT_NE((*departure)->message().find("gmb session list"),
            std::string::npos);
  EXPECT_EQ(killed, 0);
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_EQ(TryToCome("a"), "OK") << "the tenant stays";
  EXPECT_NE(Lease(client, 1).value, 0u);
  EXPECT_EQ(Events("tenant_stays").size(), 1u);
}

TEST_F(MachineDeparturesTest, WhereThatIsAllowedAllAreKilledAtTheDeadline) {
  SetTenant("a", {.may_terminate = true});
  Lease(Connect("a"), 10);
  Connect("a");
  SimClient* other = Connect("b");
  const auto departure = Depart("a", seconds(5));
  RunFor(milliseconds(4900));
  EXPECT_EQ(killed, 0);
  RunFor(milliseconds(200));
  EXPECT_EQ(killed, 2);
  EXPECT_EQ(Answer(departure), "OK");
  EXPECT_TRUE(IsOpen(other));
  EXPECT_TRUE(Delete("a").ok());
}

TEST_F(MachineDeparturesTest, OneThatOutlivesItsKillKeepsItsTenant) {
  SetTenant("a", {.may_terminate = true});
  SimClient* client = Connect("a");
  const auto departure = Depart("a", seconds(1));
  world.Advance(seconds(1));
  EXPECT_TRUE(client->ended) << "it was killed";
  client->ended = false;  // and hangs in the kernel
  RunFor(milliseconds(1900));
  EXPECT_EQ(Answer(departure), "");
  RunFor(milliseconds(200));
  EXPECT_EQ(Answer(departure), "BAD_STATE");
}

TEST_F(MachineDeparturesTest, WhomTheBrokerCannotKillKeepsItsTenant) {
  SetTenant("a", {.may_terminate = true});
  PeerIdentity peer = PeerOf("a");
  peer.pidfd = nullptr;
  ASSERT_TRUE(world.Open(peer).ok());
  const auto departure = Depart("a", seconds(1));
  RunFor(milliseconds(1100));
  EXPECT_EQ(Answer(departure), "BAD_STATE");
}

TEST_F(MachineDeparturesTest, ItIsBegunOnceAndForATenantThatThereIs) {
  Connect("a");
  const auto first = Depart("a", seconds(5));
  EXPECT_EQ(Answer(Depart("a", seconds(5))), "BAD_STATE");
  EXPECT_EQ(Answer(Depart("no", seconds(5))), "NO_SUCH_TENANT");
  EXPECT_EQ(Answer(first), "");
}

TEST_F(MachineDeparturesTest, ItsNamesAreDroppedAtOnceAlsoIfItStays) {
  SimClient* writer = Parked("a");
  const quota::LeaseId used = Lease(writer, 4, {.share_as = "used"});
  SimClient* gone = Parked("a");
  const quota::LeaseId kept =
      Lease(gone, 4, {.share_as = "kept", .keep = true});
  End(gone);
  ASSERT_NE(Where(kept), "gone");
  Depart("a", seconds(1));
  Work();
  EXPECT_EQ(Where(kept), "gone") << "nobody uses it";
  EXPECT_NE(Where(used), "gone") << "it never goes away under a reader";
  RunFor(seconds(2));
  SimClient* reader = Parked("a");
  EXPECT_EQ(Outcome(reader, Attach(reader, "used")), "NO_SUCH_LEASE");
  End(writer);
  Work();
  EXPECT_EQ(Where(used), "gone");
}

TEST_F(MachineDeparturesTest, OneThatStaysAfterAllIsAsBefore) {
  const auto departure = Depart("a", seconds(5));
  ASSERT_EQ(Answer(departure), "OK");
  world.Do("stay", [&](Turn& turn) {
    world.machine().operators().EndDeparture("a", turn);
  });
  EXPECT_EQ(TryToCome("a"), "OK");
}

TEST_F(MachineDeparturesTest, WhoWaitsForOneThatStaysAfterAllIsAnswered) {
  SimClient* const client = Connect("a");
  const auto departure = Depart("a", seconds(5));
  ASSERT_EQ(Answer(departure), "");
  world.Do("stay", [&](Turn& turn) {
    world.machine().operators().EndDeparture("a", turn);
  });
  EXPECT_EQ(Answer(departure), "BAD_STATE");
  EXPECT_NE(Lease(client, 1).value, 0u);
}

TEST_F(MachineDeparturesTest, ItWaitsForWhatIsStillBeingCopied) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 8);
  const auto departure = Depart("a", seconds(30));
  ASSERT_EQ(Where(lease), "evicting");
  End(idle);
  EXPECT_EQ(Answer(departure), "") << "the copier reads its slabs";
  EXPECT_EQ(ReasonOf(Delete("a")), "BAD_STATE");
  Work();
  EXPECT_EQ(Answer(departure), "OK");
  EXPECT_TRUE(Delete("a").ok());
}

TEST_F(MachineDeparturesTest, WithoutWaitingItIsRefusedAndDropsNothing) {
  SimClient* writer = Parked("a");
  Lease(writer, 4, {.share_as = "w"});
  EXPECT_EQ(ReasonOf(Delete("a")), "BAD_STATE");
  EXPECT_EQ(ReasonOf(Delete("no")), "NO_SUCH_TENANT");
  SimClient* reader = Parked("a");
  EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
}

TEST_F(MachineDeparturesTest, AWaitingReclaimOfItsIsAnswered) {
  SimClient* liar = Parked("a");
  stubborn.insert(liar);
  Lease(liar, 8);
  const auto reclaim = Reclaim("a", {.granules = 8, .wait = seconds(60)});
  RunCopies();
  EXPECT_FALSE(reclaim->has_value());
  End(liar);
  RunDevice();
  EXPECT_TRUE(Delete("a").ok());
  EXPECT_TRUE(reclaim->has_value()) << "its operator still waits";
}

}  // namespace
}  // namespace gmb::broker
