// A caller that asks about the disk does not wait for it.
#include "broker/metrics/state_disk.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace gmb::broker::metrics {
namespace {

TEST(StateDiskTest, ASlowDiskHoldsNobodyUpAndIsAskedOnce) {
  const SystemClock clock;
  std::promise<void> goes_on;
  const std::shared_future<void> wait = goes_on.get_future().share();
  std::atomic<int> looks{0};
  StateDisk disk(
      [&] {
        ++looks;
        wait.wait();
        return absl::ResourceExhaustedError("full");
      },
      &clock);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(disk.Latest().has_value());
  goes_on.set_value();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!disk.Latest().has_value() && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  ASSERT_TRUE(disk.Latest().has_value());
  EXPECT_FALSE(disk.Latest()->ok);
  EXPECT_EQ(looks, 1);
}

}  // namespace
}  // namespace gmb::broker::metrics
