#include "broker/daemon/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

Said CheckWithHostPool(uint64_t bytes) {
  BrokerConfig config;
  DeviceConfig device;
  device.name = "host-0";
  device.host_bytes = 16 * kMiB;
  config.devices.push_back(device);
  config.host_pool_bytes = bytes;
  testing::internal::CaptureStdout();
  const bool ok = Check(config);
  return {ok, testing::internal::GetCapturedStdout()};
}

TEST(Check, WithoutAHostPoolItSaysWhatThatMeans) {
  const Said said = CheckWithHostPool(0);
  EXPECT_TRUE(said.ok);
  EXPECT_THAT(said.text, AllOf(HasSubstr("host pool: none: leases whose "
                                         "contents are to be kept stay"),
                               HasSubstr("the broker would start")));
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

}  // namespace
}  // namespace gmb::broker
