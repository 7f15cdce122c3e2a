#include "client/preload/past_the_gate.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

TEST(PastTheGateTest, AnOpenDeviceThatReachesTheGpuIsNamed) {
  std::string fds = "/tmp/gmb-XXXXXX";
  ASSERT_NE(mkdtemp(fds.data()), nullptr);
  EXPECT_EQ(OpenToOtherDevices(fds.c_str()), nullptr);
  int number = 0;
  const auto open = [&](const std::string& target) {
    const std::string link = fds + "/" + std::to_string(number++);
    ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  };
  open("/dev/nvidia0");
  open("/dev/infiniband/rdma_cm");
  open("socket:[123]");
  open("/tmp/" + std::string(200, 'x'));
  EXPECT_EQ(OpenToOtherDevices(fds.c_str()), nullptr);
  open("/dev/infiniband/uverbs3");
  EXPECT_THAT(OpenToOtherDevices(fds.c_str()),
              ::testing::HasSubstr("network card"));
  std::filesystem::remove_all(fds);
}

TEST(PastTheGateTest, ThisProcessHasNoneAndGoesPastNobody) {
  EXPECT_EQ(OpenToOtherDevices(), nullptr);
  EXPECT_EQ(OpenToOtherDevices("/no/such/folder"), nullptr);
  EXPECT_EQ(BoundPastUs(), nullptr);
  EXPECT_EQ(BoundPastUs(), nullptr) << "with nothing loaded since";
}

}  // namespace
}  // namespace gmb::preload
