// Memory of idle tenants moves to who needs it, and comes back at the same
// address with the same bytes.
#include <gmock/gmock.h>

#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);

AcquireOptions Wait() { return WaitFor(kLong); }

class ReclaimTest : public ComponentTest {
 protected:
  void Start(const std::vector<std::string>& flags = {"--host-pool=128MiB"}) {
    BrokerOptions options;
    options.devices = {"host:64MiB"};
    options.flags = flags;
    StartBroker(options);
    MakeTenant("idle");
    MakeTenant("busy");
  }
  // A client that parks as soon as it leaves its scopes.
  std::unique_ptr<Client> ConnectWithGate(const std::string& tenant) {
    auto client = ConnectAs(tenant);
    EXPECT_TRUE(client->TurnGateOn({.park_after = absl::ZeroDuration()}).ok());
    return client;
  }
  // A lease that the client has filled within a scope.
  static Lease Filled(Client* client, uint64_t bytes, uint64_t seed) {
    auto lease = client->Acquire(bytes, Wait());
    EXPECT_TRUE(lease.ok()) << lease.status();
    auto scope = client->Enter(kLong);
    EXPECT_TRUE(scope.ok()) << scope.status();
    if (!lease.ok()) return {};
    Write(*lease, seed);
    return *std::move(lease);
  }
  // Every 8 bytes tell where they are, and whose.
  static void Write(const Lease& lease, uint64_t seed) {
    auto* const words = static_cast<uint64_t*>(lease.data());
    for (uint64_t i = 0; i < lease.size_bytes() / 8; ++i) words[i] = seed + i;
  }
  static bool Holds(const Lease& lease, uint64_t seed) {
    const auto* const words = static_cast<const uint64_t*>(lease.data());
    for (uint64_t i = 0; i < lease.size_bytes() / 8; ++i) {
      if (words[i] != seed + i) return false;
    }
    return true;
  }
  v1::SessionInfo SessionOf(const std::string& tenant) {
    v1::ListSessionsRequest request;
    request.set_tenant(tenant);
    const auto sessions = admin().ListSessions(request);
    EXPECT_TRUE(sessions.ok()) << sessions.status();
    return sessions.ok() && sessions->sessions_size() > 0
               ? sessions->sessions(0)
               : v1::SessionInfo();
  }
  // All that is parked of the tenant's.
  v1::ReclaimResponse Reclaim(const std::string& tenant) {
    v1::ReclaimRequest request;
    request.set_tenant(tenant);
    const auto done = admin().Reclaim(request, kLong);
    EXPECT_TRUE(done.ok()) << done.status();
    return done.value_or(v1::ReclaimResponse());
  }
  bool AwaitGate(const std::string& tenant, v1::SessionInfo::Gate gate) {
    return Await([&] { return SessionOf(tenant).gate() == gate; });
  }
};

TEST_F(ReclaimTest, AnIdleTenantsMemoryServesAnotherAndComesBackWhole) {
  Start();
  const auto idle = ConnectWithGate("idle");
  const auto busy = ConnectAs("busy");
  Lease lease = Filled(idle.get(), 50 * kMiB, 7);
  void* const address = lease.data();
  auto burst = busy->Acquire(46 * kMiB, Wait());
  ASSERT_TRUE(burst.ok()) << burst.status();
  EXPECT_EQ(SessionOf("idle").evicted_bytes(), 50 * kMiB);
  EXPECT_EQ(SessionOf("idle").gate(), v1::SessionInfo::GATE_CLOSED);
  EXPECT_EQ(Status().host_pool().held_bytes(), 50 * kMiB);
  std::memset(burst->data(), 0xBB, burst->size_bytes());
  ASSERT_TRUE(std::move(*burst).Release().ok());
  auto scope = idle->Enter(kLong);
  ASSERT_TRUE(scope.ok()) << scope.status();
  EXPECT_EQ(lease.data(), address);
  EXPECT_TRUE(Holds(lease, 7));
  EXPECT_EQ(SessionOf("idle").evicted_bytes(), 0U);
}

TEST_F(ReclaimTest, AnActiveTenantIsNotTouched) {
  Start();
  MakeTenant("active");
  MakeTenant("other");
  const auto active = ConnectWithGate("active");
  const auto other = ConnectAs("other");
  auto lease = active->Acquire(50 * kMiB, Wait());
  ASSERT_TRUE(lease.ok());
  auto scope = active->Enter(kLong);
  ASSERT_TRUE(scope.ok());
  Write(*lease, 3);
  EXPECT_EQ(other->Acquire(26 * kMiB, WaitFor(absl::Milliseconds(300)))
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Holds(*lease, 3));
}

TEST_F(ReclaimTest, AGuaranteePausesABorrowerBetweenItsScopes) {
  Start();
  MakeTenant("borrower");
  MakeTenant("owner", /*guarantee_bytes=*/32 * kMiB);
  const auto borrower = ConnectWithGate("borrower");
  const auto owner = ConnectAs("owner");
  Lease lease = Filled(borrower.get(), 60 * kMiB, 11);
  // Never idle for long: a scope after the other, until it is kept out.
  std::promise<void> paused;
  auto working = std::async(std::launch::async, [&] {
    absl::Status status;
    bool whole = true;
    for (int i = 0; i < 200'000 && status.ok() && whole; ++i) {
      auto scope = borrower->Enter(absl::Seconds(1));
      status = scope.status();
      if (status.ok() && i % 1000 == 0) whole = Holds(lease, 11);
    }
    return whole;
  });
  auto within = owner->Acquire(26 * kMiB, Wait());
  EXPECT_TRUE(within.ok()) << within.status();
  EXPECT_TRUE(working.get());
}

TEST_F(ReclaimTest, TwoThatTogetherExceedThePoolTakeTurns) {
  Start();
  MakeTenant("a");
  MakeTenant("b");
  const auto a = ConnectWithGate("a");
  const auto b = ConnectWithGate("b");
  Lease of_a = Filled(a.get(), 40 * kMiB, 100);
  Lease of_b = Filled(b.get(), 40 * kMiB, 200);
  for (int turn = 0; turn < 5; ++turn) {
    {
      auto scope = a->Enter(kLong);
      ASSERT_TRUE(scope.ok()) << scope.status();
      EXPECT_TRUE(Holds(of_a, 100)) << turn;
    }
    auto scope = b->Enter(kLong);
    ASSERT_TRUE(scope.ok()) << scope.status();
    EXPECT_TRUE(Holds(of_b, 200)) << turn;
  }
}

TEST_F(ReclaimTest, WithoutAHostPoolOnlyWhatMayBeLostIsTaken) {
  Start({});
  const auto idle = ConnectWithGate("idle");
  const auto busy = ConnectAs("busy");
  auto kept = idle->Acquire(26 * kMiB, Wait());
  AcquireOptions discard = Wait();
  discard.contents = Contents::kDiscard;
  auto lost = idle->Acquire(26 * kMiB, discard);
  ASSERT_TRUE(kept.ok() && lost.ok());
  {
    auto scope = idle->Enter(kLong);
    Write(*kept, 5);
    Write(*lost, 6);
  }
  auto burst = busy->Acquire(36 * kMiB, Wait());
  ASSERT_TRUE(burst.ok()) << burst.status();
  ASSERT_TRUE(std::move(*burst).Release().ok());
  auto scope = idle->Enter(kLong);
  ASSERT_TRUE(scope.ok()) << scope.status();
  EXPECT_TRUE(Holds(*kept, 5));
  // A slab of its own that `busy` had no use for may have come back.
  EXPECT_FALSE(Holds(*lost, 6));
}

TEST_F(ReclaimTest, ALeaseThatIsAwayCanBeReleased) {
  Start();
  const auto idle = ConnectWithGate("idle");
  const auto busy = ConnectAs("busy");
  auto lease = idle->Acquire(50 * kMiB, Wait());
  ASSERT_TRUE(lease.ok());
  auto burst = busy->Acquire(50 * kMiB, Wait());
  ASSERT_TRUE(burst.ok()) << burst.status();
  EXPECT_TRUE(std::move(*lease).Release().ok());
  EXPECT_EQ(Status().host_pool().reserved_bytes(), 0U);
  auto scope = idle->Enter(kLong);
  EXPECT_TRUE(scope.ok()) << scope.status();
}

TEST_F(ReclaimTest, ASessionThatDiesWhileItIsAwayLeavesNothing) {
  Start();
  const auto busy = ConnectAs("busy");
  ASSERT_TRUE(Await([&] { return Status().host_pool().done(); }));
  const Footprint before = Settle();
  {
    const auto idle = ConnectWithGate("idle");
    auto lease = idle->Acquire(50 * kMiB, Wait());
    ASSERT_TRUE(lease.ok());
    auto burst = busy->Acquire(50 * kMiB, Wait());
    ASSERT_TRUE(burst.ok()) << burst.status();
  }
  ExpectBackTo(before);
  EXPECT_EQ(Status().host_pool().reserved_bytes(), 0U);
}

TEST_F(ReclaimTest, AnOperatorTakesWhatIsParked) {
  Start();
  const auto idle = ConnectWithGate("idle");
  Lease lease = Filled(idle.get(), 16 * kMiB, 9);
  ASSERT_TRUE(AwaitGate("idle", v1::SessionInfo::GATE_PARKED));
  v1::ReclaimResponse response = Reclaim("idle");
  EXPECT_EQ(response.reclaimed_bytes(), 16 * kMiB);
  EXPECT_EQ(response.lacking_bytes(), 0U);
  auto scope = idle->Enter(kLong);
  ASSERT_TRUE(scope.ok());
  EXPECT_TRUE(Holds(lease, 9));
  // It is active now: nothing is to be had, and why is said.
  response = Reclaim("idle");
  EXPECT_EQ(response.reclaimed_bytes(), 0U);
  ASSERT_EQ(response.findings_size(), 1);
}

TEST_F(ReclaimTest, ASealedLeaseIsCopiedOnce) {
  Start();
  const auto idle = ConnectWithGate("idle");
  Lease lease = Filled(idle.get(), 16 * kMiB, 9);
  ASSERT_TRUE(lease.Seal().ok());
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(AwaitGate("idle", v1::SessionInfo::GATE_PARKED));
    EXPECT_EQ(Reclaim("idle").reclaimed_bytes(), 16 * kMiB);
    auto scope = idle->Enter(kLong);
    ASSERT_TRUE(scope.ok());
    EXPECT_TRUE(Holds(lease, 9)) << turn;
    EXPECT_EQ(SessionOf("idle").backed_bytes(), 16 * kMiB);
  }
}

TEST_F(ReclaimTest, WhatIsBackedAheadIsTakenWithoutACopy) {
  Start({"--host-pool=128MiB", "--back-ahead=4GiB"});
  const auto idle = ConnectWithGate("idle");
  const auto busy = ConnectAs("busy");
  Lease lease = Filled(idle.get(), 50 * kMiB, 4);
  ASSERT_TRUE(
      Await([&] { return SessionOf("idle").backed_bytes() == 50 * kMiB; }));
  auto burst = busy->Acquire(50 * kMiB, Wait());
  ASSERT_TRUE(burst.ok()) << burst.status();
  // Events are written by a thread of their own.
  EXPECT_TRUE(Await([this] {
    return absl::StrContains(broker().Log(), "nothing to copy");
  })) << broker().Log();
  ASSERT_TRUE(std::move(*burst).Release().ok());
  {
    auto scope = idle->Enter(kLong);
    ASSERT_TRUE(scope.ok());
    EXPECT_TRUE(Holds(lease, 4));
    Write(lease, 5);
    // Bytes were written since the copy.
    EXPECT_EQ(SessionOf("idle").backed_bytes(), 0U);
  }
  auto again = busy->Acquire(50 * kMiB, Wait());
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << broker().Log();
  ASSERT_TRUE(std::move(*again).Release().ok());
  auto scope = idle->Enter(kLong);
  ASSERT_TRUE(scope.ok());
  EXPECT_TRUE(Holds(lease, 5));
}

TEST_F(ReclaimTest, SealedMemoryIsBackedWhereMemoryWasLacking) {
  Start();
  const auto idle = ConnectWithGate("idle");
  const auto busy = ConnectAs("busy");
  Lease sealed = Filled(idle.get(), 16 * kMiB, 6);
  Lease open = Filled(idle.get(), 8 * kMiB, 7);
  ASSERT_TRUE(sealed.Seal().ok());
  auto held = busy->Acquire(40 * kMiB, Wait());
  ASSERT_TRUE(held.ok()) << held.status();
  // More than all that could be taken.
  MakeTenant("large");
  const auto large = ConnectAs("large");
  EXPECT_FALSE(large->Acquire(32 * kMiB, WaitFor(absl::Milliseconds(50))).ok());
  ASSERT_TRUE(
      Await([&] { return SessionOf("idle").backed_bytes() == 16 * kMiB; }));
  ASSERT_TRUE(std::move(*held).Release().ok());
  // All of the pool.
  auto burst = busy->Acquire(64 * kMiB, Wait());
  ASSERT_TRUE(burst.ok()) << burst.status();
  EXPECT_TRUE(Await([this] {
    return absl::StrContains(broker().Log(), "nothing to copy");
  })) << broker().Log();
  ASSERT_TRUE(std::move(*burst).Release().ok());
  auto scope = idle->Enter(kLong);
  ASSERT_TRUE(scope.ok()) << scope.status();
  EXPECT_TRUE(Holds(sealed, 6));
  EXPECT_TRUE(Holds(open, 7));
}

TEST_F(ReclaimTest, SealingDoesNotMakeAnOlderCopyTrue) {
  Start();
  const auto idle = ConnectWithGate("idle");
  auto lease = idle->Acquire(16 * kMiB, Wait());
  ASSERT_TRUE(lease.ok());
  for (const uint64_t seed : {1, 2}) {
    if (seed == 2) {
      ASSERT_TRUE(AwaitGate("idle", v1::SessionInfo::GATE_PARKED));
      EXPECT_EQ(Reclaim("idle").reclaimed_bytes(), 16 * kMiB);
    }
    auto scope = idle->Enter(kLong);
    ASSERT_TRUE(scope.ok());
    Write(*lease, seed);
  }
  ASSERT_TRUE(lease->Seal().ok());
  ASSERT_TRUE(AwaitGate("idle", v1::SessionInfo::GATE_PARKED));
  EXPECT_EQ(Reclaim("idle").reclaimed_bytes(), 16 * kMiB);
  auto scope = idle->Enter(kLong);
  ASSERT_TRUE(scope.ok());
  EXPECT_TRUE(Holds(*lease, 2));
}

TEST_F(ReclaimTest, ALoweredLimitTakesWhatIsParked) {
  Start();
  const auto idle = ConnectWithGate("idle");
  auto lease = idle->Acquire(32 * kMiB, Wait());
  ASSERT_TRUE(lease.ok());
  MakeTenant("idle", 0, 16 * kMiB);
  EXPECT_TRUE(
      Await([&] { return SessionOf("idle").evicted_bytes() == 32 * kMiB; }));
  // A request that can never fit is refused at the gate.
  const absl::Status refused = idle->Enter(kLong).status();
  ASSERT_TRUE(GetErrorDetail(refused).has_value()) << refused;
  EXPECT_EQ(GetErrorDetail(refused)->reason, ErrorReason::kTenantLimit);
  MakeTenant("idle", 0, 64 * kMiB);
  EXPECT_TRUE(idle->Enter(kLong).ok());
}

}  // namespace
}  // namespace gmb::component
