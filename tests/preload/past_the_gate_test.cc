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
  EXPECT_THAT(OpenToOtherDevices("/no/such/folder"),
              ::testing::HasSubstr("cannot be looked at"));
  EXPECT_TRUE(IsUnseen(OpenToOtherDevices("/no/such/folder")));
  EXPECT_FALSE(IsUnseen(nullptr));
  EXPECT_EQ(BoundPastUs(), nullptr);
  EXPECT_EQ(BoundPastUs(), nullptr) << "with nothing loaded since";
}

// A process without a free descriptor has one again soon.
TEST(PastTheGateTest, WhatCannotBeSeenForAMomentIsNotHeldAgainstItForEver) {
  using Verdict = UnseenTimes::Verdict;
  UnseenTimes times;
  const UnseenTimes::Clock::time_point start{};
  EXPECT_EQ(times.Judge(true, start), Verdict::kSeen);
  EXPECT_EQ(times.Judge(false, start), Verdict::kNotNow);
  const auto later = start + UnseenTimes::kPatience;
  EXPECT_EQ(times.Judge(false, later - std::chrono::seconds(1)),
            Verdict::kNotNow);
  EXPECT_EQ(times.Judge(true, later), Verdict::kSeen);
  EXPECT_EQ(times.Judge(false, later), Verdict::kNotNow) << "counted anew";
  EXPECT_EQ(times.Judge(false, later + UnseenTimes::kPatience),
            Verdict::kNever);
  EXPECT_EQ(times.Judge(false, later + 3 * UnseenTimes::kPatience),
            Verdict::kNotNow)
      << "nobody looked between these";
}

TEST(PastTheGateTest, OneThreadLooksNowAndThenAndAnotherOneAtOnce) {
  LookTimes times;
  const LookTimes::Clock::time_point start{};
  const auto gate = std::this_thread::get_id();
  std::thread other([] {});
  const auto mover = other.get_id();
  EXPECT_TRUE(times.Due(gate, start));
  EXPECT_TRUE(times.Due(mover, start)) << "after a closing";
  EXPECT_FALSE(times.Due(mover, start + LookTimes::kEvery / 2));
  EXPECT_TRUE(times.Due(mover, start + LookTimes::kEvery));
  EXPECT_TRUE(times.Due(gate, start + LookTimes::kEvery));
  EXPECT_TRUE(times.Due(mover, start + LookTimes::kEvery));
  other.join();
}

}  // namespace
}  // namespace gmb::preload
