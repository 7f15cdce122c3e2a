#include "broker/daemon/pool_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "broker/core/in_process_keeper.h"
#include "broker/daemon/fd_setup.h"
#include "broker/daemon/host_pool_setup.h"

namespace gmb::broker {
namespace {

using quota::Amount;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kGranularity = 2 * kMiB;

DeviceConfig Gpu() {
  DeviceConfig device;
  device.kind = device::DeviceKind::kVmm;
  device.name = "cuda:0";
  return device;
}

DeviceConfig Host(uint64_t bytes) {
  DeviceConfig device;
  device.kind = device::DeviceKind::kHost;
  device.name = "host-0";
  device.host_bytes = bytes;
  return device;
}

absl::StatusOr<uint64_t> Size(const BrokerConfig& config,
                              const DeviceConfig& device, uint64_t free_bytes) {
  return PoolBytes(config, device, free_bytes, kGranularity);
}

void ExpectNoFit(const BrokerConfig& config, const DeviceConfig& device,
                 uint64_t free_bytes) {
  const absl::Status status = Size(config, device, free_bytes).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("cuda:0: the pool does not fit"),
                    HasSubstr("--pool"), HasSubstr("--headroom")));
}

std::vector<PreparedPool> PreparedFor(const BrokerConfig& config) {
  InProcessKeeper keeper;
  std::atomic<SlabId> slab_ids{1};
  absl::StatusOr<std::vector<PreparedPool>> pools =
      PreparePools(config, {}, &keeper, &slab_ids);
  EXPECT_TRUE(pools.ok()) << pools.status();
  return *std::move(pools);
}

TEST(DefaultHostPool, IsAQuarterOfWhatHostDevicesLeaveAndAtMostThePools) {
  BrokerConfig config;
  config.devices = {Host(64 * kMiB), Host(64 * kMiB)};
  config.devices[1].name = "host-1";
  const std::vector<PreparedPool> pools = PreparedFor(config);
  const auto of = [&](uint64_t available) {
    return HostMemoryOf(config, pools,
                        device::AvailableMemory{available, "memory.max"});
  };
  EXPECT_EQ(of(528 * kMiB).bytes, 100 * kMiB);
  EXPECT_EQ(of(535 * kMiB).bytes, 100 * kMiB) << "in whole pages of 2 MiB";
  EXPECT_EQ(of(64 * kGiB).bytes, 128 * kMiB);
  EXPECT_EQ(of(100 * kMiB).bytes, 0u);
  EXPECT_TRUE(of(528 * kMiB).by_default);
  EXPECT_THAT(of(528 * kMiB).note,
              AllOf(HasSubstr("a quarter"), HasSubstr("memory.max")));
}

TEST(DefaultHostPool, ASizeThatIsSetWinsAndWhatCannotBeReadIsNone) {
  BrokerConfig config;
  config.devices = {Host(64 * kMiB)};
  const std::vector<PreparedPool> pools = PreparedFor(config);
  const HostMemory unread =
      HostMemoryOf(config, pools, absl::FailedPreconditionError("no /proc"));
  EXPECT_EQ(unread.bytes, 0u);
  EXPECT_EQ(unread.note, "no /proc");
  for (const uint64_t bytes : {uint64_t{0}, 256 * kMiB}) {
    config.host_pool_bytes = bytes;
    const HostMemory set = HostMemoryOf(
        config, pools, device::AvailableMemory{64 * kGiB, "meminfo"});
    EXPECT_EQ(set.bytes, bytes);
    EXPECT_FALSE(set.by_default);
  }
}

TEST(PoolBytes, ByDefaultIsAllThatIsFreeLessTheHeadroom) {
  EXPECT_EQ(*Size({}, Gpu(), 140 * kGiB), 134 * kGiB);
  EXPECT_EQ(*Size({}, Gpu(), 140 * kGiB + kMiB), 134 * kGiB);
  EXPECT_EQ(*Size({}, Gpu(), 6 * kGiB + kGranularity), kGranularity);
}

TEST(PoolBytes, AShareIsOfWhatTheHeadroomLeavesRoundedDown) {
  BrokerConfig config;
  config.pool = Amount::Fraction(0.9);
  EXPECT_EQ(*Size(config, Gpu(), 106 * kGiB), 90 * kGiB);
  config.headroom_bytes = 0;
  EXPECT_EQ(*Size(config, Gpu(), 11 * kMiB), 8 * kMiB);
}

TEST(PoolBytes, BytesSayThemselvesWhatTheyLeave) {
  BrokerConfig config;
  config.pool = Amount::Bytes(120 * kGiB);
  EXPECT_EQ(*Size(config, Gpu(), 140 * kGiB), 120 * kGiB);
  EXPECT_EQ(*Size(config, Gpu(), 120 * kGiB), 120 * kGiB);
  ExpectNoFit(config, Gpu(), 120 * kGiB - 1);
}

TEST(PoolBytes, WhatADeviceSaysItselfWins) {
  BrokerConfig config;
  config.pool = Amount::Fraction(0.5);
  config.headroom_bytes = 40 * kGiB;
  DeviceConfig device = Gpu();
  device.headroom_bytes = 10 * kGiB;
  EXPECT_EQ(*Size(config, device, 110 * kGiB), 50 * kGiB);
  device.pool = Amount::Fraction(1);
  EXPECT_EQ(*Size(config, device, 110 * kGiB), 100 * kGiB);
  device.pool = Amount::Bytes(3 * kGiB);
  EXPECT_EQ(*Size(config, device, 110 * kGiB), 3 * kGiB);
}

TEST(PoolBytes, WithoutRoomForAGranuleBesideTheHeadroomDoesNotFit) {
  ExpectNoFit({}, Gpu(), 6 * kGiB);
  ExpectNoFit({}, Gpu(), 6 * kGiB + kGranularity - 1);
  ExpectNoFit({}, Gpu(), 1 * kGiB);
  BrokerConfig config;
  config.pool = Amount::Bytes(kMiB);
  ExpectNoFit(config, Gpu(), 140 * kGiB);
}

TEST(PoolBytes, AHostDevicesIsItsSizeWhateverIsSaidOfGpus) {
  BrokerConfig config;
  config.pool = Amount::Fraction(0.5);
  config.headroom_bytes = 512 * kMiB;
  EXPECT_EQ(*Size(config, Host(kGiB), kGiB), kGiB);
  config.pool = Amount::Bytes(4 * kGiB);
  EXPECT_EQ(*Size(config, Host(kGiB), kGiB), kGiB);
}

// With real devices, of host memory.
class PreparePoolsTest : public testing::Test {
 protected:
  PoolOptions Prepare(const BrokerConfig& config,
                      const std::map<std::string, Amount>& stored = {}) {
    auto pools = PreparePools(config, stored, &keeper_, &slab_ids_);
    EXPECT_TRUE(pools.ok()) << pools.status();
    return std::move(pools->at(0).options);
  }
  static BrokerConfig OneHostDevice() {
    BrokerConfig config;
    config.devices = {Host(kGiB)};
    return config;
  }

  InProcessKeeper keeper_;
  std::atomic<SlabId> slab_ids_{1};
};

TEST_F(PreparePoolsTest, AHostDeviceHasNoHeadroom) {
  const PoolOptions pool = Prepare(OneHostDevice());
  EXPECT_EQ(pool.target_bytes, kGiB);
  EXPECT_EQ(pool.share_of_bytes, kGiB);
  EXPECT_EQ(pool.worker->baseline_bytes(), kGiB);
}

TEST_F(PreparePoolsTest, WhatAnOperatorResizedItToWinsAndIsMadeToFit) {
  const BrokerConfig config = OneHostDevice();
  EXPECT_EQ(Prepare(config, {{"host-0", Amount::Fraction(0.25)}}).target_bytes,
            256 * kMiB);
  EXPECT_EQ(
      Prepare(config, {{"host-0", Amount::Bytes(300 * kMiB)}}).target_bytes,
      300 * kMiB);
  EXPECT_EQ(Prepare(config, {{"host-0", Amount::Bytes(2 * kGiB)}}).target_bytes,
            kGiB);
  EXPECT_EQ(Prepare(config, {{"host-0", Amount::Bytes(1)}}).target_bytes,
            kGranularity);
  EXPECT_EQ(Prepare(config, {{"host-1", Amount::Bytes(kMiB)}}).target_bytes,
            kGiB);
}

TEST_F(PreparePoolsTest, WhatWasAskedForIsKeptForWhenThereIsMoreMemory) {
  BrokerConfig config = OneHostDevice();
  EXPECT_EQ(Prepare(config).wanted, Amount::Fraction(1));
  EXPECT_EQ(Prepare(config).largest_bytes, kGiB);
  config.devices[0].pool = Amount::Fraction(0.5);
  EXPECT_EQ(Prepare(config).wanted, Amount::Fraction(0.5));
  EXPECT_EQ(Prepare(config, {{"host-0", Amount::Bytes(2 * kGiB)}}).wanted,
            Amount::Bytes(2 * kGiB));
}

TEST_F(PreparePoolsTest, OpenFilesAreThoseOfWhatThePoolMayBecome) {
  BrokerConfig config = OneHostDevice();
  config.max_handles = std::numeric_limits<uint32_t>::max();  // all there are
  config.max_sessions = 1;
  auto pools = PreparePools(config, {}, &keeper_, &slab_ids_);
  ASSERT_TRUE(pools.ok()) << pools.status();
  // More handles than any limit on open files, and few slabs ready.
  PoolOptions& pool = pools->at(0).options;
  pool.target_bytes = 65'536 * kGiB;
  pool.slabs.ready_slab_bytes = 4'096 * kGiB;
  const auto now = PlanFds(config, *pools, 1);
  ASSERT_TRUE(now.ok()) << now.status();
  pool.largest_bytes = pool.target_bytes + 96 * pool.slabs.ready_slab_bytes;
  const auto grown = PlanFds(config, *pools, 1);
  ASSERT_TRUE(grown.ok()) << grown.status();
  EXPECT_EQ(now->max_handles - grown->max_handles, 96u);
}

TEST_F(PreparePoolsTest, ADevicesOwnFloatWins) {
  BrokerConfig config = OneHostDevice();
  config.float_bytes = 64 * kMiB;
  EXPECT_EQ(Prepare(config).slabs.float_target_bytes, 64 * kMiB);
  config.devices[0].float_bytes = 32 * kMiB;
  EXPECT_EQ(Prepare(config).slabs.float_target_bytes, 32 * kMiB);
}

TEST_F(PreparePoolsTest, ADeviceThatThisMachineLacksIsAnErrorWithItsName) {
  BrokerConfig config;
  config.devices = {Gpu()};
  config.devices[0].name = "GPU-00000000-0000-0000-0000-000000000000";
  const auto pools = PreparePools(config, {}, &keeper_, &slab_ids_);
  ASSERT_FALSE(pools.ok());
  EXPECT_THAT(std::string(pools.status().message()),
              HasSubstr("GPU-00000000-0000-0000-0000-000000000000: "));
}

}  // namespace
}  // namespace gmb::broker
