// Quotas and pools that operators change while clients hold memory.
#include <string>
#include <utility>

#include "base/mutex.h"
#include "gmb/error.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

class LiveChangeTest : public ComponentTest {
 protected:
  static ErrorReason ReasonOf(const absl::StatusOr<Lease>& lease) {
    return GetErrorDetail(lease.status()).value_or(ErrorDetail()).reason;
  }
  static AcquireOptions On(const std::string& device) {
    AcquireOptions options;
    options.device = device;
    return options;
  }
};

TEST_F(LiveChangeTest, AClientHearsOfItsBudgetAndIsHeldToItAtOnce) {
  StartBroker();
  MakeTenant("a");
  base::Mutex mu;
  QuotaView last;
  ClientOptions options = OptionsFor(TenantDir("a"));
  options.on_budget_changed = [&](const QuotaView& quota) {
    const base::MutexLock lock(&mu);
    last = quota;
  };
  const auto hears = [&](uint64_t limit_bytes, uint64_t over_bytes) {
    return Await([&] {
      const base::MutexLock lock(&mu);
      return last.limit_bytes == limit_bytes &&
             last.over_limit_bytes == over_bytes;
    });
  };
  const auto client = Client::Connect(options);
  ASSERT_TRUE(client.ok());
  auto lease = (*client)->Acquire(64 * kMiB);
  ASSERT_TRUE(lease.ok());

  v1::SetTenantRequest request;
  request.set_name("a");
  request.mutable_limit()->set_bytes(16 * kMiB);
  const auto answer = SetTenant(request);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->changes(0).state(), v1::Change::PENDING);
  EXPECT_EQ(answer->changes(0).remaining_bytes(), 48 * kMiB);
  EXPECT_TRUE(hears(16 * kMiB, 48 * kMiB));
  EXPECT_EQ(ReasonOf((*client)->Acquire(2 * kMiB)), ErrorReason::kTenantLimit);
  EXPECT_TRUE(std::move(*lease).Release().ok());
  const auto quota = (*client)->GetQuota();
  ASSERT_TRUE(quota.ok());
  EXPECT_EQ(quota->front().over_limit_bytes, 0U);
  EXPECT_TRUE((*client)->Acquire(16 * kMiB).ok());
  request.mutable_limit()->set_bytes(32 * kMiB);
  EXPECT_TRUE(SetTenant(request).ok());
  EXPECT_TRUE(hears(32 * kMiB, 0));
}

TEST_F(LiveChangeTest, OfTwoDevicesOneIsResizedAndOneDrained) {
  BrokerOptions options;
  options.devices = {"host:128MiB", "host:128MiB"};
  StartBroker(options);
  MakeTenant("a");
  const Footprint before = Settle();
  {
    const auto client = ConnectAs("a");
    EXPECT_EQ(client->devices().size(), 2U);
    EXPECT_EQ(ReasonOf(client->Acquire(2 * kMiB)), ErrorReason::kNoSuchDevice);
    EXPECT_EQ(ReasonOf(client->Acquire(2 * kMiB, On("host-7"))),
              ErrorReason::kNoSuchDevice);
    auto on_0 = client->Acquire(64 * kMiB, On("host-0"));
    auto on_1 = client->Acquire(64 * kMiB, On("host-1"));
    ASSERT_TRUE(on_0.ok() && on_1.ok());

    const Said shrunk = Gmb({"pool", "resize", "32MiB", "--device", "host-1"});
    EXPECT_EQ(shrunk.exit_code, 0) << shrunk.err;
    EXPECT_THAT(shrunk.out, ::testing::HasSubstr("pending"));
    EXPECT_EQ(Gmb({"pool", "drain", "--device", "host-0"}).exit_code, 0);
    EXPECT_EQ(ReasonOf(client->Acquire(2 * kMiB, On("host-0"))),
              ErrorReason::kDraining);
    EXPECT_FALSE(client->Acquire(2 * kMiB, On("host-1")).ok());
    EXPECT_TRUE(std::move(*on_1).Release().ok());
    EXPECT_TRUE(Await(
        [this] { return Status().pools(1).capacity_bytes() == 32 * kMiB; }));
    EXPECT_TRUE(client->Acquire(32 * kMiB, On("host-1")).ok());
    EXPECT_TRUE(std::move(*on_0).Release().ok());
    EXPECT_EQ(ReasonOf(client->Acquire(2 * kMiB, On("host-0"))),
              ErrorReason::kDraining);
    EXPECT_EQ(Gmb({"pool", "undrain", "--device", "host-0"}).exit_code, 0);
    EXPECT_TRUE(client->Acquire(100 * kMiB, On("host-0")).ok());
    EXPECT_EQ(Gmb({"pool", "resize", "100%", "--device", "host-1"}).exit_code,
              0);
    EXPECT_TRUE(client->Acquire(100 * kMiB, On("host-1")).ok());
  }
  ExpectBackTo(before);
}

TEST_F(LiveChangeTest, WhatOperatorsSetSurvivesARestartAndWinsOverTheFile) {
  BrokerOptions options;
  options.config = "tenants:\n  - {name: a, limit: 25%}\n";
  StartBroker(options);
  EXPECT_EQ(Gmb({"tenant", "set", "a", "--limit", "32MiB"}).exit_code, 0);
  EXPECT_EQ(Gmb({"pool", "resize", "128MiB"}).exit_code, 0);
  StopBroker();
  StartBroker(options);
  EXPECT_EQ(Pool().capacity_bytes(), 128 * kMiB);
  const auto client = ConnectAs("a");
  EXPECT_EQ(ReasonOf(client->Acquire(33 * kMiB)), ErrorReason::kTenantLimit);
  EXPECT_TRUE(client->Acquire(32 * kMiB).ok());
}

}  // namespace
}  // namespace gmb::component
