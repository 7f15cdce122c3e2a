// Several tenants share one pool: contents stay whole, and nobody ever sees
// another's bytes.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;

class SharingTest : public ComponentTest {
 protected:
  // Holds as much of the pool as there is, in leases of several sizes.
  static std::vector<Lease> TakeAll(Client* client) {
    std::vector<Lease> all;
    for (const uint64_t bytes : {50 * kMiB, 10 * kMiB, 2 * kMiB}) {
      while (true) {
        auto lease = client->Acquire(bytes);
        if (!lease.ok()) break;
        all.push_back(*std::move(lease));
      }
    }
    return all;
  }
  void TakeTurns();
  static uint64_t SumOf(const std::vector<Lease>& leases) {
    uint64_t sum = 0;
    for (const Lease& lease : leases) sum += lease.size_bytes();
    return sum;
  }
  // Whether every byte is `value` or `other`.
  static bool HoldsOnly(const std::vector<Lease>& leases, uint8_t value,
                        uint8_t other) {
    return std::all_of(leases.begin(), leases.end(), [&](const Lease& lease) {
      const auto* const bytes = static_cast<const uint8_t*>(lease.data());
      // A page at a time: uniform, and of one of the two.
      for (uint64_t at = 0; at < lease.size_bytes(); at += 4096) {
        if (bytes[at] != value && bytes[at] != other) return false;
        if (std::memcmp(bytes + at, bytes + at + 1, 4095) != 0) return false;
      }
      return true;
    });
  }
};

TEST_F(SharingTest, FourTenantsFillAndVerifyAtOnceAndLeaveNothing) {
  StartBroker();
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  for (const std::string& name : names) {
    MakeTenant(name, /*guarantee_bytes=*/32 * kMiB,
               /*limit_bytes=*/128 * kMiB);
  }
  const Footprint before = Settle();
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::vector<std::unique_ptr<Program>> tenants;
  for (size_t i = 0; i < names.size(); ++i) {
    tenants.push_back(std::make_unique<Program>(
        Directory(), names[i],
        std::vector<std::string>{CHURN_TENANT, TenantDir(names[i]),
                                 absl::StrCat(i + 1), absl::StrCat(seed + i),
                                 "150"}));
  }
  for (const auto& tenant : tenants) {
    EXPECT_EQ(tenant->AwaitExit(), 0) << tenant->Err();
    EXPECT_THAT(tenant->Out(), HasSubstr("rounds=150"));
    EXPECT_EQ(tenant->SanitizerReport(), "");
  }
  ExpectBackTo(before);
}

// The tenants take turns with the whole pool, a twice in a row.
void SharingTest::TakeTurns() {
  const auto a = ConnectAs("a");
  const auto b = ConnectAs("b");
  for (const uint8_t round : {1, 2, 3}) {
    const auto old = static_cast<uint8_t>(0xA0 + round - 1);
    std::vector<Lease> leases = TakeAll(a.get());
    EXPECT_EQ(SumOf(leases), 128 * kMiB);
    // Slabs may come back to the tenant that had them, with its own bytes.
    EXPECT_TRUE(HoldsOnly(leases, 0, old));
    for (Lease& lease : leases)
      std::memset(lease.data(), old + 1, lease.size_bytes());
    for (Lease& lease : leases) EXPECT_TRUE(std::move(lease).Release().ok());
    if (round == 2) continue;
    leases = TakeAll(b.get());
    EXPECT_EQ(SumOf(leases), 128 * kMiB);
    EXPECT_TRUE(HoldsOnly(leases, 0, round == 1 ? 0 : 0xB0));
    for (Lease& lease : leases)
      std::memset(lease.data(), 0xB0, lease.size_bytes());
    // Not left to their destructors, which do not wait for the broker's answer.
    for (Lease& lease : leases) EXPECT_TRUE(std::move(lease).Release().ok());
  }
}

TEST_F(SharingTest, WhatAnotherTenantLeftIsZero) {
  for (const std::string reuse_for : {"0s", "1h"}) {
    SCOPED_TRACE(reuse_for);
    BrokerOptions options;
    options.devices = {"host:128MiB"};
    options.reuse_for = reuse_for;
    StartBroker(options);
    MakeTenant("a");
    MakeTenant("b");
    TakeTurns();
    StopBroker();
  }
}

TEST_F(SharingTest, ALeaseOfSeveralFramesIsOneRange) {
  // 300 slabs of 1 GiB, more than one frame carries. Nobody touches most of it.
  BrokerOptions options;
  options.devices = {"host:320GiB"};
  StartBroker(options);
  MakeTenant("a");
  MakeTenant("b");
  const Footprint before = Settle();
  constexpr uint64_t kGiB = 1024 * kMiB;
  {
    const auto client = ConnectAs("a");
    auto lease = client->Acquire(300 * kGiB);
    ASSERT_TRUE(lease.ok()) << lease.status();
    auto* const bytes = static_cast<uint8_t*>(lease->data());
    for (uint64_t slab = 0; slab < 300; ++slab) {
      EXPECT_EQ(bytes[slab * kGiB], 0);
      bytes[slab * kGiB] = static_cast<uint8_t>(slab);
    }
    for (uint64_t slab = 0; slab < 300; ++slab)
      EXPECT_EQ(bytes[slab * kGiB], static_cast<uint8_t>(slab));
    ExpectServed("b");
    EXPECT_TRUE(std::move(*lease).Release().ok());
  }
  ExpectBackTo(before);
}

}  // namespace
}  // namespace gmb::component
