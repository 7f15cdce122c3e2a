#include "client/preload/create_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace gmb::preload {
namespace {

using ::testing::ElementsAre;

class CreateRunTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kMiB = uint64_t{1} << 20;

  std::vector<size_t> Creates(int count, uint64_t bytes, CUdevice device = 0) {
    std::vector<size_t> ahead;
    for (int i = 0; i < count; ++i)
      ahead.push_back(run_.Next(device, bytes, now_));
    return ahead;
  }

  CreateRun run_;
  CreateRun::TimePoint now_ = CreateRun::TimePoint() + std::chrono::hours(1);
};

TEST_F(CreateRunTest, ItAsksForMoreTheLongerTheRun) {
  EXPECT_THAT(Creates(8, 2 * kMiB), ElementsAre(0, 1, 2, 4, 8, 16, 16, 16));
}

TEST_F(CreateRunTest, LargeHandlesAreFewerAndVeryLargeOnesNone) {
  EXPECT_THAT(Creates(5, 20 * kMiB), ElementsAre(0, 1, 2, 3, 3));
  EXPECT_THAT(Creates(3, 64 * kMiB), ElementsAre(0, 1, 1));
  EXPECT_THAT(Creates(3, 66 * kMiB), ElementsAre(0, 0, 0));
}

TEST_F(CreateRunTest, AnotherSizeOrDeviceOrAPauseEndsTheRun) {
  EXPECT_THAT(Creates(3, 2 * kMiB), ElementsAre(0, 1, 2));
  EXPECT_THAT(Creates(2, 4 * kMiB), ElementsAre(0, 1));
  EXPECT_THAT(Creates(2, 4 * kMiB, 1), ElementsAre(0, 1));
  now_ += CreateRun::kPause;
  EXPECT_THAT(Creates(2, 4 * kMiB, 1), ElementsAre(0, 1));
}

TEST_F(CreateRunTest, ARefusalEndsItForAWhile) {
  EXPECT_THAT(Creates(4, 2 * kMiB), ElementsAre(0, 1, 2, 4));
  run_.Refused(now_);
  EXPECT_THAT(Creates(3, 2 * kMiB), ElementsAre(0, 0, 0));
  for (const auto end = now_ + CreateRun::kAfterRefusal; now_ < end;
       now_ += CreateRun::kPause / 5) {
    EXPECT_THAT(Creates(1, 2 * kMiB), ElementsAre(0));
  }
  EXPECT_THAT(Creates(3, 2 * kMiB), ElementsAre(1, 2, 4));
}

}  // namespace
}  // namespace gmb::preload
