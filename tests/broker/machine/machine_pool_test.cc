// A pool and the device around it.
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "broker/machine/machine.h"
#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class MachinePoolTest : public testing::Test {
 protected:
  // 1,000 MiB of a device of 2,000 are free, and 100 are to stay so.
  void AddPool(std::optional<quota::Amount> wanted) {
    Machine::NewPool pool;
    pool.info = {device::DeviceKind::kVmm, "gpu", "simulated", 2000 * kMiB,
                 2 * kMiB};
    pool.baseline_bytes = 1000 * kMiB;
    pool.target_bytes = 900 * kMiB;
    pool.share_of_bytes = 900 * kMiB;
    pool.headroom_bytes = 100 * kMiB;
    pool.wanted = wanted;
    pool.slabs = SlabPool::DefaultOptions(900 * kMiB, 2 * kMiB);
    Turn turn = NewTurn();
    ASSERT_TRUE(machine.AddPool(pool, turn).ok());
    machine.Settle(turn);
    CountJobs(turn);
  }
  static Turn NewTurn() { return {quota::Instant{1}, absl::UnixEpoch()}; }
  void CountJobs(Turn& turn) {
    for (Effect& effect : turn.TakeEffects()) {
      if (auto* give = std::get_if<Give>(&effect))
        jobs.push_back(std::move(give->job));
    }
  }
  // A job comes back, and tells that so much was free without our slabs.
  void Answer(uint64_t baseline_bytes) {
    ASSERT_FALSE(jobs.empty());
    DeviceResult result;
    result.job = AuditJob{};
    result.reading.baseline_bytes = baseline_bytes;
    result.reading.free_bytes = baseline_bytes;
    jobs.pop_back();
    Turn turn = NewTurn();
    machine.OnDeviceResult(quota::PoolId{1}, result, turn);
    CountJobs(turn);
  }
  [[nodiscard]] uint64_t Target() const {
    return machine.state().engine.Pool(quota::PoolId{1})->target_bytes;
  }

  Machine machine{MachineOptions{}, /*host_pool_bytes=*/0};
  std::vector<DeviceJob> jobs;
};

// After a start beside the survivors of a broker that was killed.
TEST_F(MachinePoolTest, ShareGrowsWithWhatOthersGiveBack) {
  AddPool(quota::Amount::Fraction(1));
  Answer(1000 * kMiB);
  EXPECT_EQ(Target(), 900 * kMiB);
  Answer(1800 * kMiB);
  EXPECT_EQ(Target(), 1700 * kMiB);
}

TEST_F(MachinePoolTest, PoolGrowsToItsSizeInBytesAndNotBeyond) {
  AddPool(quota::Amount::Bytes(1500 * kMiB));
  Answer(1200 * kMiB);
  EXPECT_EQ(Target(), 1200 * kMiB);
  Answer(1900 * kMiB);
  EXPECT_EQ(Target(), 1500 * kMiB);
}

TEST_F(MachinePoolTest, OperatorsSmallerSizeStays) {
  AddPool(quota::Amount::Fraction(1));
  Turn turn = NewTurn();
  ASSERT_TRUE(
      machine.ResizePool("gpu", quota::Amount::Bytes(400 * kMiB), turn).ok());
  CountJobs(turn);
  Answer(1800 * kMiB);
  EXPECT_EQ(Target(), 400 * kMiB);
  EXPECT_TRUE(
      machine.CheckResize("gpu", quota::Amount::Bytes(1700 * kMiB)).ok())
      << "the memory that came free can be asked for";
}

}  // namespace
}  // namespace gmb::broker
