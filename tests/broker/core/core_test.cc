#include "broker/core/core.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "proto/error_status.h"
#include "tests/broker/core/core_fixture.h"

namespace gmb::broker {
namespace {

using quota::Amount;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CoreTest : public CoreFixture {
 protected:
  // A pool of 256 MiB is all ready slabs and float, and its worker creates no
  // more of itself: the next create is a request's.
  bool AwaitAllReady(const device::FaultyAllocator* faults) {
    return AwaitPool([&](const v1::PoolStatus& p) {
      return p.ready_bytes() == 248 * kMiB &&
             faults->calls(device::FaultyAllocator::Op::kCreate) ==
                 p.ready_bytes() / p.ready_slab_bytes();
    });
  }
  // The warnings that a session is told when it opens now.
  std::vector<std::string> WarningsAtHello() {
    PeerIdentity peer;
    peer.origin = Origin::kTenantDirectory;
    peer.tenant_directory = "a";
    const absl::StatusOr<OpenedSession> opened = core.OpenSession(peer);
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return {};
    sessions.push_back(opened->id);
    return opened->warnings;
  }
};

TEST_F(CoreTest, AGrantIsAnnouncedAfterItsHandlesAndCountsAsGranted) {
  AddHostPool(256 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  const v1::BrokerMessage answer = a->Answer(a->Acquire(21 * kMiB));
  ASSERT_TRUE(answer.has_grant()) << answer.ShortDebugString();
  EXPECT_EQ(answer.grant().bytes(), 22 * kMiB);  // rounded up, and said
  EXPECT_EQ(a->order, (std::vector<std::string>{"frame", "message"}));
  EXPECT_EQ(a->fds_sent, answer.grant().slabs());
  EXPECT_EQ(Pool().granted_bytes(), 22 * kMiB);
  ASSERT_EQ(journal.All().leases.size(), 1u);
  EXPECT_EQ(journal.All().leases[0].id, answer.grant().lease_id());
}

TEST_F(CoreTest, ThePartsOfThePoolAddUpToItsCapacity) {
  AddHostPool(256 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  for (uint64_t bytes : {2, 50, 6, 130}) {
    const v1::BrokerMessage answer = a->Answer(a->Acquire(bytes * kMiB));
    ASSERT_TRUE(answer.has_grant());
    EXPECT_EQ(SumOfParts(Pool()), 256 * kMiB);
    if (bytes == 50) (void)a->Answer(a->Release(answer.grant().lease_id()));
    EXPECT_EQ(SumOfParts(Pool()), 256 * kMiB);
  }
}

TEST_F(CoreTest, AboveTheLimitIsRefusedWithTheDeficit) {
  AddHostPool(256 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(0.25));
  auto a = Connect("a");
  const v1::BrokerMessage answer = a->Answer(a->Acquire(100 * kMiB));
  ASSERT_TRUE(answer.has_error());
  EXPECT_EQ(answer.error().detail().reason(), v1::TENANT_LIMIT);
  EXPECT_EQ(answer.error().detail().deficit_bytes(), 36 * kMiB);
}

TEST_F(CoreTest, AWaitingRequestIsServedWhenAnotherReleases) {
  AddHostPool(256 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  SetTenant("b", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  auto b = Connect("b");
  const v1::BrokerMessage held = a->Answer(a->Acquire(200 * kMiB));
  ASSERT_TRUE(held.has_grant());
  const uint64_t request = b->Acquire(100 * kMiB, 60);
  EXPECT_TRUE(
      b->Await([](const auto& m) { return m.has_waiting(); }).has_waiting());
  (void)a->Release(held.grant().lease_id());
  EXPECT_TRUE(b->Answer(request).has_grant());
}

TEST_F(CoreTest, AWaitEndsAtItsDeadline) {
  AddHostPool(64 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  ASSERT_TRUE(a->Answer(a->Acquire(64 * kMiB)).has_grant());
  SetTenant("b", Amount::Bytes(0), Amount::Fraction(1));
  auto b = Connect("b");
  const v1::BrokerMessage answer = b->Answer(b->Acquire(2 * kMiB, 1));
  ASSERT_TRUE(answer.has_error());
  EXPECT_EQ(answer.error().detail().reason(), v1::POOL_EXHAUSTED);
}

TEST_F(CoreTest, ACancelledRequestIsAnsweredSo) {
  AddHostPool(64 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  SetTenant("b", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  ASSERT_TRUE(a->Answer(a->Acquire(64 * kMiB)).has_grant());
  auto b = Connect("b");
  const uint64_t request = b->Acquire(2 * kMiB, 600);
  v1::ClientMessage cancel;
  cancel.mutable_cancel()->set_acquire_request_id(request);
  (void)b->Send(cancel);
  EXPECT_EQ(b->Answer(request).error().detail().reason(),
            v1::CANCELLED_BY_CLIENT);
}

TEST_F(CoreTest, AClosedSessionGivesItsLeasesBackToOthers) {
  AddHostPool(64 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  SetTenant("b", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  ASSERT_TRUE(a->Answer(a->Acquire(64 * kMiB)).has_grant());
  auto b = Connect("b");
  const uint64_t request = b->Acquire(64 * kMiB, 60);
  core.CloseSession(a->session, "hang-up");
  EXPECT_TRUE(b->Answer(request).has_grant());
  EXPECT_TRUE(absl::IsUnavailable(a->closed));
  ASSERT_EQ(journal.All().leases.size(), 1u);
  EXPECT_EQ(journal.All().leases[0].session, b->session);
}

TEST_F(CoreTest, ARepeatedRequestIsAnsweredAlikeWithoutDoubleEffect) {
  AddHostPool(64 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  const v1::BrokerMessage first = a->Answer(a->Acquire(4 * kMiB));
  ASSERT_TRUE(first.has_grant());
  {
    base::MutexLock lock(&a->mu);
    a->messages.clear();
  }
  v1::ClientMessage again;
  again.set_request_id(first.request_id());
  again.mutable_acquire()->set_bytes(4 * kMiB);
  core.HandleMessage(a->session, again);
  EXPECT_EQ(a->Answer(first.request_id()).grant().lease_id(),
            first.grant().lease_id());
  EXPECT_EQ(Pool().granted_bytes(), 4 * kMiB);
}

TEST_F(CoreTest, ReleasingTwiceOrAnothersLeaseIsNotFound) {
  AddHostPool(64 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  SetTenant("b", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  auto b = Connect("b");
  const uint64_t lease = a->Answer(a->Acquire(4 * kMiB)).grant().lease_id();
  EXPECT_EQ(b->Answer(b->Release(lease)).error().detail().reason(),
            v1::NO_SUCH_LEASE);
  EXPECT_TRUE(a->Answer(a->Release(lease)).has_released());
  EXPECT_EQ(a->Answer(a->Release(lease)).error().detail().reason(),
            v1::NO_SUCH_LEASE);
}

TEST_F(CoreTest, ALimitLoweredBelowWhatIsLeasedIsPendingAndTold) {
  AddHostPool(64 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  ASSERT_TRUE(a->Answer(a->Acquire(32 * kMiB)).has_grant());
  TenantPolicy policy;
  policy.name = "a";
  policy.quota = {Amount::Bytes(0), Amount::Bytes(8 * kMiB), 1};
  auto changes = core.SetTenant(policy);
  ASSERT_TRUE(changes.ok());
  EXPECT_EQ(changes->front().state(), v1::Change::PENDING);
  EXPECT_EQ(changes->front().remaining_bytes(), 24 * kMiB);
  const auto told = a->Await([](const auto& m) {
    return m.has_budget_changed() &&
           m.budget_changed().quota().over_limit_bytes() > 0;
  });
  EXPECT_EQ(told.budget_changed().quota().limit_bytes(), 8 * kMiB);
  EXPECT_EQ(a->Answer(a->Acquire(2 * kMiB)).error().detail().reason(),
            v1::TENANT_LIMIT);
}

TEST_F(CoreTest, ALimitThatTakesEffectByAReleaseIsTold) {
  AddHostPool(64 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  const uint64_t lease = a->Answer(a->Acquire(32 * kMiB)).grant().lease_id();
  SetTenant("a", Amount::Bytes(0), Amount::Bytes(8 * kMiB));
  (void)a->Answer(a->Release(lease));
  const auto told = a->Await([](const auto& m) {
    return m.has_budget_changed() &&
           m.budget_changed().quota().limit_bytes() == 8 * kMiB &&
           m.budget_changed().quota().leased_bytes() == 0;
  });
  EXPECT_TRUE(told.has_budget_changed());
}

TEST_F(CoreTest, GuaranteesAboveThePoolAreOvercommitted) {
  AddHostPool(64 * kMiB);
  SetTenant("a", Amount::Fraction(0.75), Amount::Fraction(1));
  TenantPolicy policy;
  policy.name = "b";
  policy.quota = {Amount::Fraction(0.5), Amount::Fraction(1), 1};
  const absl::Status refused = core.SetTenant(policy).status();
  EXPECT_EQ(proto::GetErrorDetail(refused)->reason(), v1::OVERCOMMITTED);
  EXPECT_EQ(proto::GetErrorDetail(refused)->deficit_bytes(), 16 * kMiB);
  EXPECT_FALSE(core.TenantReport("b").ok());
}

TEST_F(CoreTest, ATenantWithSessionsCannotBeDeleted) {
  AddHostPool(64 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  EXPECT_EQ(proto::GetErrorDetail(core.DeleteTenant("a"))->reason(),
            v1::BAD_STATE);
  core.CloseSession(a->session, "done");
  EXPECT_TRUE(core.DeleteTenant("a").ok());
  EXPECT_TRUE(absl::IsNotFound(core.DeleteTenant("a")));
}

TEST_F(CoreTest, ACreateThatFailsGivesAReadySlabUpAndTriesAgain) {
  device::FaultyAllocator* faults = AddFaultyPool(256 * kMiB, 256 * kMiB);
  ASSERT_NE(faults, nullptr);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  ASSERT_TRUE(AwaitAllReady(faults));
  faults->FailOnce(device::FaultyAllocator::Op::kCreate, 1,
                   absl::ResourceExhaustedError("out of memory"));
  auto a = Connect("a");
  EXPECT_TRUE(a->Answer(a->Acquire(2 * kMiB)).has_grant());
}

TEST_F(CoreTest, ADeviceErrorIsAnAnswerToTheRequestThatMetIt) {
  device::FaultyAllocator* faults = AddFaultyPool(256 * kMiB, 256 * kMiB);
  ASSERT_NE(faults, nullptr);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  ASSERT_TRUE(AwaitAllReady(faults));
  faults->FailOnce(device::FaultyAllocator::Op::kCreate, 1,
                   absl::InternalError("CUDA_ERROR_UNKNOWN"));
  auto a = Connect("a");
  EXPECT_EQ(a->Answer(a->Acquire(2 * kMiB)).error().detail().reason(),
            v1::DEVICE_ERROR);
  EXPECT_TRUE(a->Answer(a->Acquire(2 * kMiB)).has_grant());
  EXPECT_EQ(SumOfParts(Pool()), 256 * kMiB);
}

// 256 MiB of device, a pool of 192 and a headroom of 64.
TEST_F(CoreTest, OutsideBytesUseTheHeadroomUpAndAreMissingBeyondIt) {
  device::FaultyAllocator* faults = AddFaultyPool(256 * kMiB, 192 * kMiB);
  ASSERT_NE(faults, nullptr);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  faults->SetOutsideBytes(40 * kMiB);
  EXPECT_TRUE(AwaitPool([](const auto& p) {
    return p.outside_bytes() == 40 * kMiB &&
           p.headroom_left_bytes() == 24 * kMiB && p.missing_bytes() == 0;
  }));
  faults->SetOutsideBytes(70 * kMiB);
  EXPECT_TRUE(
      AwaitPool([](const auto& p) { return p.missing_bytes() == 6 * kMiB; }));
  auto a = Connect("a");
  EXPECT_EQ(a->Answer(a->Acquire(192 * kMiB)).error().detail().reason(),
            v1::OVERCOMMITTED);
  EXPECT_TRUE(a->Answer(a->Acquire(186 * kMiB)).has_grant());
  faults->Heal();
  EXPECT_TRUE(AwaitPool([](const auto& p) { return p.missing_bytes() == 0; }));
}

// A process outside wins what the first slab of a hand-over leaves.
TEST_F(CoreTest, AThiefWinsOneSlabOfAHandOverAndIsNamed) {
  device::FaultyAllocator* faults = AddFaultyPool(256 * kMiB, 256 * kMiB);
  ASSERT_NE(faults, nullptr);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  SetTenant("b", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  const v1::BrokerMessage held = a->Answer(a->Acquire(240 * kMiB));
  ASSERT_TRUE(held.has_grant());
  (void)a->Answer(a->Release(held.grant().lease_id()));
  constexpr pid_t kThief = 1;
  faults->StealNextDestroyed(kThief);
  auto b = Connect("b");
  EXPECT_TRUE(b->Answer(b->Acquire(256 * kMiB)).has_error());
  // The bytes that are short are a's debt; the driver names the thief.
  EXPECT_TRUE(AwaitPool([](const auto& p) {
    return p.unreturned_bytes() > 0 &&
           p.unreturned_outside_bytes() == p.unreturned_bytes();
  }));
  const v1::PoolStatus pool = Pool();
  EXPECT_EQ(pool.unreturned_bytes(), pool.ready_slab_bytes());
  // The rest was spared.
  EXPECT_GE(pool.returned_bytes(), 240 * kMiB - pool.ready_slab_bytes());
  EXPECT_EQ(SumOfParts(pool), 256 * kMiB);
  EXPECT_TRUE(b->Answer(b->Acquire(240 * kMiB)).has_grant());
  faults->Heal();
  EXPECT_TRUE(
      AwaitPool([](const auto& p) { return p.unreturned_bytes() == 0; }));
}

TEST_F(CoreTest, AProcessThatHadASessionIsNoThief) {
  device::FaultyAllocator* faults = AddFaultyPool(256 * kMiB, 256 * kMiB);
  ASSERT_NE(faults, nullptr);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  SetTenant("b", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a", 4711);
  const v1::BrokerMessage held = a->Answer(a->Acquire(240 * kMiB));
  ASSERT_TRUE(held.has_grant());
  (void)a->Answer(a->Release(held.grant().lease_id()));
  faults->StealNextDestroyed(4711);
  core.CloseSession(a->session, "hang-up");
  auto b = Connect("b");
  EXPECT_TRUE(b->Answer(b->Acquire(256 * kMiB)).has_error());
  EXPECT_TRUE(
      AwaitPool([](const auto& p) { return p.unreturned_bytes() > 0; }));
  const uint64_t readings =
      faults->calls(device::FaultyAllocator::Op::kFreeBytes);
  EXPECT_TRUE(AwaitPool([&](const auto& /*pool*/) {
    return faults->calls(device::FaultyAllocator::Op::kFreeBytes) >
           readings + 4;
  }));
  EXPECT_GT(Pool().unreturned_bytes(), 0u);
  EXPECT_EQ(Pool().unreturned_outside_bytes(), 0u);
  faults->Heal();
  EXPECT_TRUE(
      AwaitPool([](const auto& p) { return p.unreturned_bytes() == 0; }));
}

TEST_F(CoreTest, WhatADeletedTenantKeepsIsMissingUntilItIsBack) {
  device::FaultyAllocator* faults = AddFaultyPool(256 * kMiB, 256 * kMiB);
  ASSERT_NE(faults, nullptr);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  SetTenant("b", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a", 4711);
  const v1::BrokerMessage held = a->Answer(a->Acquire(240 * kMiB));
  ASSERT_TRUE(held.has_grant());
  (void)a->Answer(a->Release(held.grant().lease_id()));
  core.CloseSession(a->session, "hang-up");
  ASSERT_TRUE(core.DeleteTenant("a").ok());
  const uint64_t slab = Pool().ready_slab_bytes();
  const auto obtainable = [this] {
    return core.TenantReport("b")->pools(0).view().obtainable_bytes();
  };
  EXPECT_EQ(obtainable(), 256 * kMiB);
  // One of its slabs does not come back when it is destroyed.
  faults->StealNextDestroyed(4711);
  auto b = Connect("b");
  EXPECT_TRUE(b->Answer(b->Acquire(256 * kMiB)).has_error());
  EXPECT_TRUE(AwaitPool([&](const auto& p) {
    return p.missing_bytes() == slab && p.unreturned_bytes() == 0;
  })) << Pool().ShortDebugString();
  EXPECT_EQ(obtainable(), 256 * kMiB - slab);
  EXPECT_EQ(Pool().unreturned_outside_bytes(), 0U);
  // It comes back by itself: no refusal for good.
  EXPECT_EQ(b->Answer(b->Acquire(256 * kMiB)).error().detail().reason(),
            v1::POOL_EXHAUSTED);
  EXPECT_TRUE(b->Answer(b->Acquire(240 * kMiB)).has_grant());
  EXPECT_EQ(Pool().unreturned_outside_bytes(), 0U);
  faults->Heal();
  EXPECT_TRUE(AwaitPool([&](const auto& p) { return p.missing_bytes() == 0; }));
  EXPECT_EQ(obtainable(), 16 * kMiB);
}

TEST_F(CoreTest, ALostDeviceRefusesAndTheOtherServesOn) {
  auto host = device::OpenHostAllocator({64 * kMiB, "host-0"});
  ASSERT_TRUE(host.ok());
  auto faulty = std::make_unique<device::FaultyAllocator>(*std::move(host));
  faulty->FailFrom(device::FaultyAllocator::Op::kCreate, 1,
                   absl::UnavailableError("CUDA_ERROR_DEVICE_UNAVAILABLE"));
  AddPool(std::move(faulty), 64 * kMiB);
  AddHostPool(64 * kMiB, "host-1");
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  ASSERT_TRUE(AwaitPool([](const auto& p) { return !p.problem().empty(); }));
  auto a = Connect("a");
  v1::ClientMessage message;
  message.mutable_acquire()->set_bytes(2 * kMiB);
  message.mutable_acquire()->set_device("host-0");
  EXPECT_EQ(a->Answer(a->Send(message)).error().detail().reason(),
            v1::DEVICE_LOST);
  message.mutable_acquire()->set_device("host-1");
  EXPECT_TRUE(a->Answer(a->Send(message)).has_grant());
}

TEST_F(CoreTest, AResizedPoolShrinksAsMemoryIsReleased) {
  AddHostPool(256 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  const uint64_t lease = a->Answer(a->Acquire(200 * kMiB)).grant().lease_id();
  const auto resize = [this] {
    return core.ResizePool("host-0", Amount::Bytes(128 * kMiB));
  };
  const auto change = resize();
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->state(), v1::Change::PENDING);
  EXPECT_GE(change->remaining_bytes(), 72 * kMiB);
  // Memory that no lease has goes at once.
  EXPECT_TRUE(AwaitPool(
      [](const auto& p) { return p.capacity_bytes() == 200 * kMiB; }));
  EXPECT_EQ(resize()->remaining_bytes(), 72 * kMiB);
  (void)a->Answer(a->Release(lease));
  EXPECT_TRUE(AwaitPool([](const auto& p) {
    return p.capacity_bytes() == 128 * kMiB && SumOfParts(p) == 128 * kMiB;
  }));
}

TEST_F(CoreTest, AResizeIsAppliedWhenTheDeviceHasTheRestBack) {
  AddHostPool(256 * kMiB);
  ASSERT_TRUE(
      AwaitPool([](const auto& p) { return p.ready_bytes() == 248 * kMiB; }));
  const auto resize = [this] {
    return core.ResizePool("host-0", Amount::Bytes(80 * kMiB));
  };
  const auto change = resize();
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->state(), v1::Change::PENDING);
  EXPECT_EQ(change->remaining_bytes(), 168 * kMiB);
  EXPECT_TRUE(AwaitPool(
      [](const v1::PoolStatus& p) { return p.capacity_bytes() == 80 * kMiB; }));
  EXPECT_LE(core.Status().handles() + Pool().slabs(), 80 * kMiB / (8 * kMiB));
  EXPECT_EQ(resize()->state(), v1::Change::APPLIED);
}

TEST_F(CoreTest, ADrainingPoolMakesNoGrantsAndAnotherStillDoes) {
  AddHostPool(64 * kMiB, "host-0");
  AddHostPool(64 * kMiB, "host-1");
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  ASSERT_TRUE(core.DrainPool("host-0", true).ok());
  v1::ClientMessage message;
  message.mutable_acquire()->set_bytes(2 * kMiB);
  message.mutable_acquire()->set_device("host-0");
  EXPECT_EQ(a->Answer(a->Send(message)).error().detail().reason(),
            v1::DRAINING);
  message.mutable_acquire()->set_device("host-1");
  EXPECT_TRUE(a->Answer(a->Send(message)).has_grant());
  message.mutable_acquire()->clear_device();
  EXPECT_EQ(a->Answer(a->Send(message)).error().detail().reason(),
            v1::NO_SUCH_DEVICE);
}

TEST_F(CoreTest, SessionsEndWithTheBrokersDrain) {
  AddHostPool(64 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a");
  core.BeginDrain(absl::Seconds(30));
  EXPECT_TRUE(
      a->Await([](const auto& m) { return m.has_draining(); }).has_draining());
  EXPECT_EQ(a->Answer(a->Acquire(2 * kMiB)).error().detail().reason(),
            v1::DRAINING);
  PeerIdentity peer;
  peer.origin = Origin::kTenantDirectory;
  peer.tenant_directory = "a";
  EXPECT_EQ(proto::GetErrorDetail(core.OpenSession(peer).status())->reason(),
            v1::DRAINING);
}

TEST_F(CoreTest, ATenantIsKnownByTokenThenUidThenDefault) {
  AddHostPool(64 * kMiB);
  TenantPolicy policy;
  policy.name = "by-token";
  policy.token = "secret";
  ASSERT_TRUE(core.SetTenant(policy).ok());
  policy = {};
  policy.name = "by-uid";
  policy.uids = {4711};
  ASSERT_TRUE(core.SetTenant(policy).ok());
  PeerIdentity peer;
  peer.uid = 4711;
  EXPECT_EQ(core.OpenSession(peer)->tenant, "by-uid");
  peer.tenant_token = "secret";
  EXPECT_EQ(core.OpenSession(peer)->tenant, "by-token");
  peer.tenant_token = "guess";
  EXPECT_EQ(proto::GetErrorDetail(core.OpenSession(peer).status())->reason(),
            v1::NO_SUCH_TENANT);
  peer = {};
  peer.uid = 1;
  EXPECT_EQ(proto::GetErrorDetail(core.OpenSession(peer).status())->reason(),
            v1::NO_SUCH_TENANT);
}

TEST_F(CoreTest, ATokenCountsForTheProcessThatGreetedAlone) {
  AddHostPool(64 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  auto a = Connect("a", /*pid=*/11);
  ASSERT_TRUE(core.Authenticate(a->token, 11).ok());
  EXPECT_EQ(core.Authenticate(a->token, 11)->session, a->session);
  for (const pid_t thief : {12, 0}) {
    const auto stolen = core.Authenticate(a->token, thief);
    EXPECT_EQ(proto::GetErrorDetail(stolen.status())->reason(), v1::NO_SESSION);
  }
}

// 256 MiB of device, a pool of 192 and a headroom of 64.
TEST_F(CoreTest, ASessionIsWarnedAtHelloWhenTheHeadroomHasRunOut) {
  device::FaultyAllocator* faults =
      AddFaultyPool(256 * kMiB, 192 * kMiB, device::DeviceKind::kVmm);
  ASSERT_NE(faults, nullptr);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  EXPECT_THAT(WarningsAtHello(), IsEmpty());
  faults->SetOutsideBytes(62 * kMiB);
  ASSERT_TRUE(AwaitPool(
      [](const auto& p) { return p.headroom_left_bytes() == 2 * kMiB; }));
  EXPECT_THAT(WarningsAtHello(), IsEmpty());
  faults->SetOutsideBytes(64 * kMiB);
  ASSERT_TRUE(
      AwaitPool([](const auto& p) { return p.headroom_left_bytes() == 0; }));
  EXPECT_THAT(
      WarningsAtHello(),
      ElementsAre(AllOf(HasSubstr("the headroom for CUDA contexts"),
                        HasSubstr("--headroom"), HasSubstr("device=host-0"))));
  faults->Heal();
  ASSERT_TRUE(
      AwaitPool([](const auto& p) { return p.headroom_left_bytes() > 0; }));
  EXPECT_THAT(WarningsAtHello(), IsEmpty());
}

TEST_F(CoreTest, HostMemoryNeedsNoHeadroomAndWarnsOfNone) {
  device::FaultyAllocator* faults = AddFaultyPool(256 * kMiB, 192 * kMiB);
  ASSERT_NE(faults, nullptr);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  faults->SetOutsideBytes(64 * kMiB);
  ASSERT_TRUE(
      AwaitPool([](const auto& p) { return p.headroom_left_bytes() == 0; }));
  EXPECT_THAT(WarningsAtHello(), IsEmpty());
}

TEST_F(CoreTest, ADrainedPoolAndItsReturnToServiceAreEvents) {
  AddHostPool(64 * kMiB);
  base::Mutex mu;
  base::CondVar changed;
  std::vector<std::string> seen;
  const uint64_t subscription = events.Subscribe([&](const v1::Event& event) {
    const base::MutexLock lock(&mu);
    seen.push_back(absl::StrCat(event.kind(), " ", event.device()));
    changed.NotifyAll();
  });
  ASSERT_TRUE(core.DrainPool("host-0", true).ok());
  ASSERT_TRUE(core.DrainPool("host-0", false).ok());
  {
    const base::MutexLock lock(&mu);
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (seen.size() < 2 && std::chrono::steady_clock::now() < deadline)
      changed.WaitUntil(&mu, deadline);
    EXPECT_THAT(seen,
                ElementsAre("pool_draining host-0", "pool_in_service host-0"));
  }
  events.Unsubscribe(subscription);
}

std::vector<std::string> Warnings(const v1::DiagnoseResponse& diagnosis) {
  std::vector<std::string> warnings;
  for (const v1::Finding& finding : diagnosis.findings()) {
    if (finding.severity() == v1::Finding::WARNING)
      warnings.push_back(finding.subject() + ": " + finding.message());
  }
  return warnings;
}

MachineOptions FewFiles() {
  MachineOptions options;
  options.max_handles = 2;
  options.max_sessions = 2;
  options.few_files = "2 of 100 handles are served";
  return options;
}

class CoreOfFewFilesTest : public CoreFixture {
 protected:
  CoreOfFewFilesTest() : CoreFixture(FewFiles()) {}
};

TEST_F(CoreOfFewFilesTest,
       DiagnosisSaysThatTheBrokerIsThrottledAndWhenItIsFull) {
  AddHostPool(64 * kMiB);
  SetTenant("a", Amount::Bytes(0), Amount::Fraction(1));
  EXPECT_THAT(Warnings(core.Diagnose()),
              ElementsAre("open files: 2 of 100 handles are served"));
  auto a = Connect("a");
  auto b = Connect("a");
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(a->Answer(a->Acquire(2 * kMiB)).has_grant());
  EXPECT_THAT(
      Warnings(core.Diagnose()),
      ElementsAre(HasSubstr("open files"),
                  HasSubstr("handles: 2 of 2 handles are in use: raise"),
                  HasSubstr("sessions: 2 of 2 sessions are open: raise")));
}

}  // namespace
}  // namespace gmb::broker
