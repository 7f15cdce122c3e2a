// Tenants that are deleted while they have sessions.
#include <fcntl.h>

#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/error_status.h"
#include "tests/broker/core/core_reclaim_fixture.h"
#include "tests/broker/core/killable_child.h"

namespace gmb::broker {
namespace {

using quota::Amount;
using std::chrono::milliseconds;
using std::chrono::minutes;

class CoreDeparturesTest : public CoreReclaimTest {
 protected:
  std::future<absl::Status> Depart(quota::Nanoseconds wait) {
    auto gone = std::make_shared<std::promise<absl::Status>>();
    const absl::Status started = core.StartDeparture(
        "idle", wait,
        [gone](const absl::Status& status) { gone->set_value(status); });
    if (!started.ok()) gone->set_value(started);
    return gone->get_future();
  }
  static v1::ErrorReason ReasonOf(const absl::Status& status) {
    return proto::ToWireError(status).detail().reason();
  }
  absl::Status Open(const std::string& tenant) {
    PeerIdentity peer;
    peer.origin = Origin::kTenantDirectory;
    peer.tenant_directory = tenant;
    return core.OpenSession(peer).status();
  }
};

TEST_F(CoreDeparturesTest, ATenantGoesOnceItsLastSessionHasEnded) {
  const auto idle = Holder("idle", 14 * kMiB);
  std::future<absl::Status> gone = Depart(minutes(5));
  EXPECT_GT(
      idle->Await([](const v1::BrokerMessage& m) { return m.has_draining(); })
          .draining()
          .remaining()
          .seconds(),
      200);
  EXPECT_EQ(
      idle->Answer(idle->Acquire(kMiB, kPatience)).error().detail().reason(),
      v1::DRAINING);
  EXPECT_EQ(ReasonOf(Open("idle")), v1::DRAINING);
  EXPECT_EQ(ReasonOf(Depart(minutes(1)).get()), v1::BAD_STATE);
  core.CloseSession(idle->session, "ended");
  ASSERT_TRUE(gone.get().ok());
  EXPECT_EQ(ReasonOf(Open("idle")), v1::DRAINING) << "until it is deleted";
  EXPECT_TRUE(core.DeleteTenant("idle").ok());
  EXPECT_EQ(ReasonOf(Open("idle")), v1::NO_SUCH_TENANT);
}

TEST_F(CoreDeparturesTest, WithoutSessionsItGoesAtOnce) {
  EXPECT_TRUE(Depart(minutes(5)).get().ok());
  core.EndDeparture("idle");  // what follows has failed, say
  EXPECT_NE(Connect("idle")->session, 0U);
}

TEST_F(CoreDeparturesTest, WhatItWaitsForIsRefusedAndWhatIsParkedIsTaken) {
  const auto idle = Holder("idle", 14 * kMiB);
  const auto busy = Holder("busy", 30 * kMiB);
  busy->SetWord(ipc::GateWord(ipc::GateState::kOpen, 1, 1));
  const uint64_t waiting = idle->Acquire(20 * kMiB, 60);
  idle->Park();
  std::future<absl::Status> gone = Depart(minutes(5));
  EXPECT_EQ(idle->Answer(waiting).error().detail().reason(), v1::DRAINING);
  const v1::Evict evict = idle->AwaitEvict();
  idle->Unmapped(evict.lease_id(), evict.move());
  EXPECT_TRUE(AwaitLease(evict.lease_id(), v1::LeaseInfo::EVICTED));
  core.CloseSession(idle->session, "ended");
  EXPECT_TRUE(gone.get().ok());
}

TEST_F(CoreDeparturesTest, WhoDoesNotEndKeepsItsTenant) {
  const auto idle = Holder("idle", 14 * kMiB);
  EXPECT_EQ(ReasonOf(Depart(milliseconds(50)).get()), v1::BAD_STATE);
  EXPECT_TRUE(idle->Answer(idle->Acquire(kMiB, kPatience)).has_grant());
  EXPECT_NE(Connect("idle")->session, 0U);
}

TEST_F(CoreDeparturesTest, WhoMayBeTerminatedIsKilledAtTheEnd) {
  TenantPolicy policy = *core.GetPolicy("idle");
  policy.reclaim.may_terminate = true;
  ASSERT_TRUE(core.SetTenant(policy).ok());
  KillableChild child;
  const auto idle = Holder("idle", 14 * kMiB, child.Peer());
  std::future<absl::Status> gone = Depart(milliseconds(50));
  EXPECT_EQ(child.AwaitSignal(), SIGKILL);
  core.CloseSession(idle->session, "its process ended");  // the handle server's
  EXPECT_TRUE(gone.get().ok());
}

TEST_F(CoreDeparturesTest, OneThatTheBrokerMayNotKillKeepsItsTenant) {
  TenantPolicy policy = *core.GetPolicy("idle");
  policy.reclaim.may_terminate = true;
  ASSERT_TRUE(core.SetTenant(policy).ok());
  PeerIdentity peer;
  peer.pid = 4711;
  peer.pidfd =
      std::make_shared<const base::UniqueFd>(open("/dev/null", O_RDONLY));
  std::promise<std::string> told;
  const uint64_t subscription = events.Subscribe([&](const v1::Event& event) {
    if (absl::StrContains(event.kind(), "terminated"))
      told.set_value(absl::StrCat(event.kind(), ": ", event.message()));
  });
  const auto idle = Holder("idle", 14 * kMiB, peer);
  EXPECT_EQ(ReasonOf(Depart(milliseconds(50)).get()), v1::BAD_STATE);
  EXPECT_THAT(told.get_future().get(),
              testing::StartsWith("not_terminated: pid 4711 could not be"));
  events.Unsubscribe(subscription);
  EXPECT_TRUE(idle->Answer(idle->Acquire(kMiB, kPatience)).has_grant());
}

TEST_F(CoreDeparturesTest, ABrokerThatStopsAnswers) {
  const auto idle = Holder("idle", 14 * kMiB);
  std::future<absl::Status> gone = Depart(minutes(5));
  core.RefuseWaiting();
  EXPECT_EQ(ReasonOf(gone.get()), v1::DRAINING);
  EXPECT_EQ(ReasonOf(Depart(minutes(5)).get()), v1::DRAINING);
}

}  // namespace
}  // namespace gmb::broker
