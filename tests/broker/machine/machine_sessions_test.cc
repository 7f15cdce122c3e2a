// Sessions: who may come, what is said to them again, and what their end
// leaves (docs/protocol.md, sections 2, 4, 6 and 10).
#include <chrono>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineSessionsTest : public MachineFixture {
 protected:
  static MachineWorld Shape() {
    MachineWorld shape;
    shape.options.max_sessions = 4;
    return shape;
  }
  MachineSessionsTest() : MachineFixture(Shape()) {}
  void SetUp() override {
    SetTenant("a", {.max_sessions = 2});
    SetTenant("b");
  }
  std::string Try(const PeerIdentity& peer) {
    return ReasonOf(world.Open(peer).status());
  }
  static PeerIdentity Operator() {
    PeerIdentity peer;
    peer.origin = Origin::kAdmin;
    peer.pid = 7;
    return peer;
  }
  SimClient* Command() { return *world.Open(Operator()); }
  std::string Authenticated(const std::string& token, pid_t pid) {
    return ReasonOf(
        world.machine().sessions().Authenticate(token, pid).status());
  }
  std::string Streams(uint64_t session) {
    return ReasonOf(world.machine().sessions().CheckStream(session));
  }
  void BeginDrain(int64_t seconds_left) {
    world.Do("drain", [&](Turn& turn) {
      world.machine().operators().BeginDrain(absl::Seconds(seconds_left), turn);
    });
  }
};

// --- Peers that may come.

TEST_F(MachineSessionsTest, APeerIsWelcomedAsItsTenantWithTheDevices) {
  const SimClient* client = Connect("a");
  EXPECT_EQ(client->welcome.tenant, "a");
  ASSERT_EQ(client->welcome.devices.size(), 1u);
  EXPECT_EQ(client->welcome.devices[0].uuid, "sim-1");
  EXPECT_EQ(client->welcome.devices[0].granularity_bytes, kGranule);
  EXPECT_TRUE(client->welcome.warnings.empty());
  EXPECT_EQ(Command()->welcome.tenant, "") << "an operator is no tenant";
}

TEST_F(MachineSessionsTest, NobodyIsATenantThatThereIsNot) {
  EXPECT_EQ(Try(PeerOf("c")), "NO_SUCH_TENANT");
  EXPECT_EQ(world.clients().size(), 0u);
}

TEST_F(MachineSessionsTest, ATenantsSessionsAreBoundedForItself) {
  SimClient* first = Connect("a");
  Connect("a");
  EXPECT_EQ(Try(PeerOf("a")), "TOO_MANY_SESSIONS");
  EXPECT_EQ(Try(PeerOf("b")), "OK");
  End(first);
  EXPECT_EQ(Try(PeerOf("a")), "OK");
}

TEST_F(MachineSessionsTest, AFullBrokerLetsOperatorsInUpToTheirOwnBound) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Try(PeerOf("b")), "OK");
  EXPECT_EQ(Try(PeerOf("b")), "TOO_MANY_SESSIONS");
  for (int i = 0; i < 32; ++i) EXPECT_EQ(Try(Operator()), "OK") << i;
  EXPECT_EQ(Try(Operator()), "TOO_MANY_SESSIONS");
  End(world.clients().front());
  EXPECT_EQ(Try(PeerOf("b")), "OK") << "operators take no client's place";
}

TEST_F(MachineSessionsTest, OneIsWarnedWhenTheHeadroomHasRunOut) {
  world.device(kPool).SetOutside(9 * kGranule);  // the headroom is 8
  RunFor(seconds(2));
  const SimClient* client = Connect("a");
  ASSERT_EQ(client->welcome.warnings.size(), 1u);
  EXPECT_NE(client->welcome.warnings[0].find("--headroom"), std::string::npos);
  EXPECT_NE(client->welcome.warnings[0].find("sim-1"), std::string::npos);
  world.device(kPool).SetOutside(0);
  RunFor(seconds(2));
  EXPECT_TRUE(Connect("b")->welcome.warnings.empty());
}

// --- Tokens and streams.

TEST_F(MachineSessionsTest, ATokenCountsForTheProcessThatGreetedWhileItLasts) {
  SimClient* client = Connect("a");
  const std::string token = client->token;
  const pid_t pid = client->pid;
  const auto caller = world.machine().sessions().Authenticate(token, pid);
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller->session, client->session);
  EXPECT_FALSE(caller->is_operator);
  EXPECT_EQ(Authenticated(token, pid + 1), "NO_SESSION");
  EXPECT_EQ(Authenticated("", pid), "NO_SESSION");
  EXPECT_EQ(Authenticated(token + "0", pid), "NO_SESSION");
  End(client);
  EXPECT_EQ(Authenticated(token, pid), "NO_SESSION");
  EXPECT_TRUE(world.machine()
                  .sessions()
                  .Authenticate(Command()->token, 7)
                  ->is_operator);
}

TEST_F(MachineSessionsTest, OnlyALiveTenantsSessionHasAStream) {
  SimClient* client = Connect("a");
  const uint64_t session = client->session;
  EXPECT_EQ(Streams(session), "OK");
  EXPECT_EQ(Streams(Command()->session), "BAD_STATE");
  EXPECT_EQ(Streams(999), "NO_SESSION");
  End(client);
  EXPECT_EQ(Streams(session), "NO_SESSION");
}

TEST_F(MachineSessionsTest, ANewStreamIsToldWhatIsNotAnsweredUnderItsNumber) {
  SimClient* client = Parked("b");
  const quota::LeaseId lease = Lease(client, 4);
  const quota::LeaseId other = Lease(client, 4);
  NewStream(client);
  EXPECT_EQ(Told(client, v1::BrokerMessage::kGrant), 2u) << "those are over";
  Reclaim("b", 4);
  ASSERT_EQ(client->moves.size(), 1u);
  const std::string evict = client->moves.front().SerializeAsString();
  NewStream(client);
  EXPECT_EQ(Told(client, v1::BrokerMessage::kEvict), 2u);
  EXPECT_EQ(client->said.back().SerializeAsString(), evict);
  Work();
  NewStream(client);
  EXPECT_EQ(Told(client, v1::BrokerMessage::kEvict), 2u) << "it is answered";
  Restore(client);
  RunDevice();
  ASSERT_EQ(client->moves.size(), 1u);
  const std::string map = client->moves.front().SerializeAsString();
  NewStream(client);
  EXPECT_EQ(client->said.back().SerializeAsString(), map);
  Work();
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_EQ(Where(other), "mapped");
}

TEST_F(MachineSessionsTest, ANewStreamIsToldOfATrimThatIsNotAnswered) {
  SimClient* client = Parked("b");
  Lease(client, 4);
  SetTrimmable(client, 4);
  Reclaim("b", ReclaimWish{.to = v1::ReclaimRequest::TRIM});
  ASSERT_NE(client->trim, 0u);
  const std::string trim = client->said.back().SerializeAsString();
  NewStream(client);
  EXPECT_EQ(client->said.back().SerializeAsString(), trim);
  EXPECT_EQ(Told(client, v1::BrokerMessage::kTrim), 2u);
  Trimmed(client);
  NewStream(client);
  EXPECT_EQ(Told(client, v1::BrokerMessage::kTrim), 2u);
}

// --- Their end.

TEST_F(MachineSessionsTest, ASessionsEndDropsItsRequestsAndGivesItsLeases) {
  SimClient* holder = Connect("a");
  const quota::LeaseId lease = Lease(holder, 40);
  const uint64_t own = Ask(holder, 30, {.wait = seconds(60)});
  SimClient* other = Connect("b");
  const uint64_t id = Ask(other, 40, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(holder, own), "waits");
  const uint64_t session = holder->session;
  world.Close(holder, "it hung up");
  RunDevice();
  EXPECT_EQ(Where(lease), "gone");
  EXPECT_EQ(Outcome(other, id), "granted");
  EXPECT_EQ(Waiting(), 0u);
  EXPECT_EQ(Of("a").leased_bytes, 0u);
  ASSERT_TRUE(world.hung_up.contains(session));
  EXPECT_EQ(world.hung_up[session].code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(world.hung_up[session].message().find("it hung up"),
            std::string::npos)
      << "the stream says why, if it is there to hear it";
  EXPECT_EQ(Events("session_closed").back().message(), "it hung up");
}

TEST_F(MachineSessionsTest, OneEndsOnce) {
  SimClient* client = Connect("a");
  const uint64_t session = client->session;
  End(client);
  world.Do("again", [&](Turn& turn) {
    world.machine().CloseSession(session, "again", turn);
    EXPECT_TRUE(turn.TakeEffects().empty());
  });
}

TEST_F(MachineSessionsTest, SessionsOfOneProcessEndEachByItself) {
  const PeerIdentity peer = PeerOf("b");
  SimClient* one = *world.Open(peer);
  SimClient* two = *world.Open(peer);
  const quota::LeaseId of_one = Lease(one, 4);
  const quota::LeaseId of_two = Lease(two, 4);
  EXPECT_NE(one->session, two->session);
  EXPECT_EQ(Outcome(two, Release(two, of_one)), "NO_SUCH_LEASE");
  End(one);
  EXPECT_EQ(Where(of_one), "gone");
  EXPECT_EQ(Where(of_two), "mapped");
  EXPECT_TRUE(IsOpen(two));
}

TEST_F(MachineSessionsTest, SlabsOfADeadSessionServeItsTenantOrAreDestroyed) {
  SimClient* client = Connect("a");
  Lease(client, 40);
  End(client);
  EXPECT_EQ(Parts().granted_bytes, 0u);
  EXPECT_EQ(Parts().unreturned_bytes, 0u);
  SimClient* other = Connect("b");
  EXPECT_NE(Lease(other, 60).value, 0u);
}

// --- The broker's own end.

TEST_F(MachineSessionsTest, ABrokerThatStopsTellsAndRefuses) {
  SimClient* holder = Connect("a");
  Lease(holder, 60);
  SimClient* waiter = Connect("b");
  const uint64_t waiting = Ask(waiter, 20, {.wait = seconds(60)});
  BeginDrain(30);
  for (const SimClient* client : {holder, waiter})
    EXPECT_EQ(Told(client, v1::BrokerMessage::kDraining), 1u);
  EXPECT_EQ(Outcome(waiter, waiting), "DRAINING");
  EXPECT_EQ(Outcome(holder, Ask(holder, 1)), "DRAINING");
  EXPECT_EQ(Try(PeerOf("b")), "DRAINING");
  EXPECT_EQ(Try(Operator()), "OK") << "operators see it stop";
  BeginDrain(60);
  EXPECT_EQ(Told(holder, v1::BrokerMessage::kDraining), 1u) << "said once";
  world.Advance(seconds(10));
  NewStream(holder);
  ASSERT_TRUE(holder->said.back().has_draining());
  EXPECT_EQ(holder->said.back().draining().remaining().seconds(), 20);
  world.Advance(seconds(60));
  NewStream(holder);
  EXPECT_EQ(holder->said.back().draining().remaining().seconds(), 0);
}

// --- The end of very many leases.

class MachineLargeSessionTest : public MachineFixture {
 protected:
  static constexpr uint64_t kLeases = 100;
  static constexpr uint64_t kAtOnce = 16;
  static MachineWorld Shape() {
    MachineWorld shape{.granules = kLeases};
    shape.options.most_ends_at_once = kAtOnce;
    return shape;
  }
  MachineLargeSessionTest() : MachineFixture(Shape()) {}
  void SetUp() override {
    SetTenant("a", {.max_handles = 1000});
    SetTenant("b", {.max_handles = 1000});
    large = Parked("a");
    session = large->session;
    for (uint64_t i = 0; i < kLeases; ++i) Lease(large, 1);
  }
  [[nodiscard]] uint64_t Left() const { return state().leases->size(); }

  SimClient* large = nullptr;
  uint64_t session = 0;
};

TEST_F(MachineLargeSessionTest, ItsLeasesComeBackSomeInATurn) {
  End(large);
  EXPECT_EQ(Left(), kLeases - kAtOnce);
  for (uint64_t left = Left(); left > 0; left = Left()) {
    ASSERT_LE(world.machine().NextDue(world.now()), world.now());
    world.AdvanceToDue();
    ASSERT_LT(Left(), left);
    EXPECT_GE(Left() + kAtOnce, left);
  }
  EXPECT_EQ(state().sessions->Find(session), nullptr);
  EXPECT_TRUE(state().ended_sessions->empty());
  EXPECT_EQ(Events("lease_reclaimed").size(), kLeases);
  EXPECT_EQ(Events("session_closed").size(), 1u);
}

TEST_F(MachineLargeSessionTest, MeanwhileNobodySpeaksForItAndItGetsNothing) {
  const std::string token = state().SessionAt(session).token;
  const pid_t pid = state().SessionAt(session).peer.pid;
  Ask(large, 10, {.wait = seconds(60)});
  ASSERT_EQ(Waiting(), 1u);
  End(large);
  EXPECT_EQ(Waiting(), 0u);
  EXPECT_EQ(
      ReasonOf(world.machine().sessions().Authenticate(token, pid).status()),
      "NO_SESSION");
  EXPECT_EQ(ReasonOf(world.machine().sessions().CheckStream(session)),
            "NO_SESSION");
  const uint64_t left = Left();
  v1::ClientMessage message;
  message.set_request_id(1000);
  message.mutable_acquire()->set_bytes(kGranule);
  world.Do("message", [&](Turn& turn) {
    world.machine().HandleMessage(session, message, turn);
  });
  EXPECT_LE(Left(), left - kAtOnce) << "no lease more, and some less";
  world.Do("close", [&](Turn& turn) {
    world.machine().CloseSession(session, "once more", turn);
  });
  EXPECT_EQ(Events("session_closed").size(), 1u);
}

// Its last lease was being made when it ended, and cannot be.
TEST_F(MachineLargeSessionTest, WhatCannotBeMadeForItIsNotAskedForAgain) {
  SetTenant("b", {.guarantee = 90, .max_handles = 1000});
  for (int i = 0; i < 80; ++i)
    Release(large, quota::LeaseId{large->leases.begin()->first});
  SimClient* other = Connect("b");
  Lease(other, 60);
  world.device(kPool).SetOutside(22 * kGranule);
  Ask(large, 14, {.wait = seconds(60)});
  ASSERT_EQ(Waiting(), 0u) << "its slabs are being made";
  // The memory that would be there for it, once its own are back, is another's.
  Ask(other, 25, {.wait = seconds(60)});
  End(large);
  ASSERT_NE(state().sessions->Find(session), nullptr);
  RunDevice();
  EXPECT_GE(Events("create_failed").size(), 1u);
  RunFor(seconds(1));
  EXPECT_EQ(state().sessions->Find(session), nullptr);
  EXPECT_TRUE(state().pending->empty());
  EXPECT_EQ(Resident("b"), 85u);
}

// Its bytes are counted on: nobody else has to give way.
TEST_F(MachineLargeSessionTest, NobodyIsEvictedForWhatItLeaves) {
  SetTenant("owner", {.guarantee = 80});
  for (uint64_t i = 0; i < 50; ++i)
    Release(large, quota::LeaseId{large->leases.begin()->first});
  RunDevice();
  SimClient* other = Parked("b");
  const quota::LeaseId lease = Lease(other, 50);
  SimClient* owner = Connect("owner");
  End(large);
  const uint64_t id = Ask(owner, 45, {.wait = seconds(60)});
  Work();
  RunFor(milliseconds(100));
  EXPECT_EQ(Outcome(owner, id), "granted");
  EXPECT_EQ(Where(lease), "mapped");
}

}  // namespace
}  // namespace gmb::broker
