#include "broker/daemon/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "broker/daemon/check_directories.h"
#include "broker/instance_lock.h"
#include "broker/store/quota_store.h"
#include "tests/broker/temp_directory.h"

namespace gmb::broker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = uint64_t{1} << 20;

struct Said {
  bool ok;
  std::string text;
};

BrokerConfig ConfigIn(const TempDirectory& directory) {
  BrokerConfig config;
  DeviceConfig device;
  device.name = "host-0";
  device.host_bytes = 16 * kMiB;
  config.devices.push_back(device);
  config.socket_dir = directory / "run";
  config.state_dir = directory / "state";
  return config;
}

Said Checked(const BrokerConfig& config) {
  testing::internal::CaptureStdout();
  const bool ok = Check(config);
  return {ok, testing::internal::GetCapturedStdout()};
}

Said CheckWithHostPool(uint64_t bytes) {
  const TempDirectory directory;
  BrokerConfig config = ConfigIn(directory);
  config.host_pool_bytes = bytes;
  return Checked(config);
}

// A state directory in which operators gave tenant a this guarantee.
void Store(const BrokerConfig& config, uint64_t guarantee_bytes) {
  std::filesystem::create_directories(config.state_dir);
  TenantPolicy policy;
  policy.name = "a";
  policy.quota = {quota::Amount::Bytes(guarantee_bytes),
                  quota::Amount::Fraction(1), 1};
  const auto store = QuotaStore::Open(config.state_dir);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->PutTenant(policy, {}).ok());
}

TEST(Check, WithoutAHostPoolItSaysWhatThatMeans) {
  const Said said = CheckWithHostPool(0);
  EXPECT_TRUE(said.ok);
  EXPECT_THAT(said.text, AllOf(HasSubstr("host pool: none: leases whose "
                                         "contents are to be kept stay"),
                               HasSubstr("the broker would start")));
}

TEST(Check, TheDefaultHostPoolIsShownWithWhatItIsAShareOf) {
  const TempDirectory directory;
  const Said said = Checked(ConfigIn(directory));
  EXPECT_TRUE(said.ok) << said.text;
  EXPECT_THAT(said.text, AllOf(HasSubstr("host pool: 16.0 MiB, "),
                               HasSubstr("by default: as much as the pools")));
}

TEST(Check, AHostPoolThatFitsIsShown) {
  const Said said = CheckWithHostPool(4 * kMiB);
  EXPECT_TRUE(said.ok);
  EXPECT_THAT(said.text, HasSubstr("host pool: 4.0 MiB, "));
}

TEST(Check, AHostPoolLargerThanTheMachinesMemoryIsAProblem) {
  const Said said = CheckWithHostPool(uint64_t{64} << 40);
  EXPECT_FALSE(said.ok);
  EXPECT_THAT(said.text, AllOf(HasSubstr("problem: host pool is larger than"),
                               Not(HasSubstr("would start"))));
}

TEST(Check, NothingIsMadeInTheDirectories) {
  const TempDirectory directory;
  const Said said = Checked(ConfigIn(directory));
  EXPECT_TRUE(said.ok) << said.text;
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Check, DirectoriesOfAnotherBrokerAreAProblem) {
  const TempDirectory directory;
  const BrokerConfig config = ConfigIn(directory);
  for (const std::string& held : {config.socket_dir, config.state_dir}) {
    std::filesystem::create_directories(held);
    {
      const auto lock = InstanceLock::Acquire(held);
      ASSERT_TRUE(lock.ok());
      const Said said = Checked(config);
      EXPECT_FALSE(said.ok);
      EXPECT_THAT(said.text,
                  HasSubstr("problem: another broker uses this directory"));
    }
    EXPECT_TRUE(Checked(config).ok);
  }
}

TEST(Check, ALockFileStaysAsItIs) {
  const TempDirectory directory;
  const BrokerConfig config = ConfigIn(directory);
  std::filesystem::create_directories(config.state_dir);
  std::ofstream(config.state_dir + "/gmbd.lock") << "1\nlong ago\n";
  EXPECT_TRUE(Checked(config).ok);
  std::ifstream lock(config.state_dir + "/gmbd.lock");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(lock), {}),
            "1\nlong ago\n");
}

// A start takes it out of all pools when one has no room for it.
TEST(Check, AStoredGuaranteeThatOnePoolRefusesIsTakenOutOfAll) {
  const TempDirectory directory;
  BrokerConfig config = ConfigIn(directory);
  DeviceConfig large = config.devices.front();
  large.name = "host-1";
  large.host_bytes = 40 * kMiB;
  config.devices.push_back(large);
  Store(config, 24 * kMiB);
  TenantConfig b;
  b.policy.name = "b";
  b.policy.quota.limit = quota::Amount::Fraction(1);
  b.policy.device_quotas["host-1"] = {quota::Amount::Bytes(32 * kMiB),
                                      quota::Amount::Fraction(1), 1};
  config.tenants.push_back(b);
  const Said said = Checked(config);
  EXPECT_TRUE(said.ok) << said.text;
  EXPECT_THAT(said.text, HasSubstr("warning: tenant a would start without"));
}

TEST(Check, AStateDirectoryThatCannotBeMadeIsAProblem) {
  const TempDirectory directory;
  BrokerConfig config = ConfigIn(directory);
  std::ofstream(directory / "file") << "no directory";
  config.state_dir = directory / "file/state";
  const Said said = Checked(config);
  EXPECT_FALSE(said.ok);
  EXPECT_THAT(said.text, HasSubstr("problem: not a directory: "));
}

// As on a full disk: no file may grow.
TEST(Check, AFullDiskIsAProblem) {
  const TempDirectory directory;
  const BrokerConfig config = ConfigIn(directory);
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const absl::Status checked = CheckDirectory(config.state_dir);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(std::string(checked.message()), HasSubstr("cannot write to "));
}

TEST(Check, ADamagedDatabaseIsAProblemUnlessItIsToBeSetAside) {
  const TempDirectory directory;
  BrokerConfig config = ConfigIn(directory);
  std::filesystem::create_directories(config.state_dir);
  std::ofstream(config.state_dir + "/gmb.db") << std::string(4096, 'x');
  const Said said = Checked(config);
  EXPECT_FALSE(said.ok);
  EXPECT_THAT(said.text,
              AllOf(HasSubstr("problem: the broker does not start without"),
                    HasSubstr("restore " + config.state_dir + "/gmb.db")));
  config.fresh_state = true;
  const Said fresh = Checked(config);
  EXPECT_TRUE(fresh.ok) << fresh.text;
  EXPECT_THAT(fresh.text, HasSubstr("would be set aside"));
  EXPECT_EQ(std::filesystem::file_size(config.state_dir + "/gmb.db"), 4096U);
}

TEST(Check, WhatOperatorsChangedIsLookedAt) {
  const TempDirectory directory;
  BrokerConfig config = ConfigIn(directory);
  Store(config, 12 * kMiB);
  EXPECT_THAT(Checked(config).text, HasSubstr("tenants: 1, 1 of them as"));
  // It gives way to a tenant of the file that has more than the rest.
  TenantConfig b;
  b.policy.name = "b";
  b.policy.quota = {quota::Amount::Bytes(8 * kMiB), quota::Amount::Fraction(1),
                    1};
  config.tenants.push_back(b);
  const Said beside = Checked(config);
  EXPECT_TRUE(beside.ok) << beside.text;
  EXPECT_THAT(beside.text, HasSubstr("tenant a would start without its"));
  // The file's tenants alone have more than there is.
  config.tenants.back().policy.name = "c";
  config.tenants.push_back(b);
  config.tenants.back().policy.quota.guarantee =
      quota::Amount::Bytes(12 * kMiB);
  const Said above = Checked(config);
  EXPECT_FALSE(above.ok);
  EXPECT_THAT(above.text,
              HasSubstr("guarantees are above the pool by 4.0 MiB"));
}

TEST(Check, AStoredGuaranteeThatNoLongerFitsIsSaid) {
  const TempDirectory directory;
  const BrokerConfig config = ConfigIn(directory);
  Store(config, 32 * kMiB);
  const Said said = Checked(config);
  EXPECT_TRUE(said.ok);
  EXPECT_THAT(said.text, HasSubstr("warning: tenant a would start without its "
                                   "guarantee"));
}

}  // namespace
}  // namespace gmb::broker
