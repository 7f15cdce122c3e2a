#include "client/cli/demo/pool_choice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kChoiceMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

internal::DeviceProbe NoGpu() {
  internal::DeviceProbe probe;
  probe.problem = "no driver";
  return probe;
}

internal::DeviceProbe OneGpu(uint64_t total_bytes) {
  internal::DeviceProbe probe;
  probe.gpus.push_back(
      {.uuid = "GPU-1", .name = "NVIDIA H200", .total_bytes = total_bytes});
  return probe;
}

TEST(PoolChoiceTest, WithoutAGpuAGigabyteOfHostMemoryIsShared) {
  EXPECT_THAT(ChoosePool("auto", NoGpu(), 64 * kGiB)->broker_flags,
              ElementsAre("--device", "host:1000MiB", "--host-pool", "400MiB"));
}

TEST(PoolChoiceTest, AGpuThatIsNotTakenIsToldWhy) {
  internal::DeviceProbe probe = NoGpu();
  EXPECT_THAT(ChoosePool("auto", probe, 64 * kGiB)->why,
              HasSubstr("this machine shows no GPU"));
  probe.machine_has_gpu = true;
  EXPECT_THAT(ChoosePool("auto", probe, 64 * kGiB)->why,
              HasSubstr("GPU cannot be used: no driver"));
}

TEST(PoolChoiceTest, OnASmallMachineHalfOfWhatIsAvailable) {
  EXPECT_THAT(ChoosePool("auto", NoGpu(), 700 * kChoiceMiB)->broker_flags,
              ElementsAre("--device", "host:320MiB", "--host-pool", "128MiB"));
}

TEST(PoolChoiceTest, WithTooLittleMemoryItSaysHowMuchItTakes) {
  const absl::Status status =
      ChoosePool("auto", NoGpu(), 70 * kChoiceMiB).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("40MiB"));
  EXPECT_FALSE(ChoosePool("host:2GiB", NoGpu(), kGiB).ok());
  EXPECT_FALSE(ChoosePool("host:lots", NoGpu(), kGiB).ok());
}

TEST(PoolChoiceTest, ASizeThatIsTooSmallIsAtFaultNotTheMemory) {
  const absl::Status status = CheckPoolName("host:8MiB");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("host:40MiB or more"));
  EXPECT_EQ(ChoosePool("host:8MiB", NoGpu(), 64 * kGiB).status(), status);
  EXPECT_TRUE(CheckPoolName("host:40MiB").ok());
}

TEST(PoolChoiceTest, ANameThatIsNoDeviceSaysWhatIs) {
  for (const char* const name :
       {"", "foo", "host", "host:", "host:lots", "cuda:", "cuda:01", "cuda:x",
        "gpu-1", "/dev/nvidia0"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckPoolName(name))) << name;
  }
  EXPECT_THAT(std::string(CheckPoolName("foo").message()),
              HasSubstr("host:512MiB"));
  for (const char* const name :
       {"auto", "host:1GiB", "cuda:0", "GPU-8f5c", "MIG-8f5c"}) {
    EXPECT_TRUE(CheckPoolName(name).ok()) << name;
  }
}

TEST(PoolChoiceTest, AGpuIsTakenWhereThereIsOneAndNotAllOfIt) {
  EXPECT_THAT(ChoosePool("auto", OneGpu(141 * kGiB), 20 * kGiB)->broker_flags,
              ElementsAre("--device", "GPU-1", "--pool", "8160MiB",
                          "--host-pool", "3264MiB"));
  EXPECT_THAT(ChoosePool("auto", OneGpu(16 * kGiB), 20 * kGiB)->broker_flags,
              ElementsAre("--device", "GPU-1", "--pool", "4080MiB",
                          "--host-pool", "1632MiB"));
}

TEST(PoolChoiceTest, AGpusPoolIsNotLargerThanItsHostPoolAllows) {
  EXPECT_THAT(ChoosePool("auto", OneGpu(141 * kGiB), 4 * kGiB)->broker_flags,
              ElementsAre("--device", "GPU-1", "--pool", "4800MiB",
                          "--host-pool", "1920MiB"));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      ChoosePool("auto", OneGpu(141 * kGiB), 8 * kChoiceMiB).status()));
}

TEST(PoolChoiceTest, HostMemoryHasToHoldBothPools) {
  EXPECT_TRUE(ChoosePool("host:1GiB", NoGpu(), 3 * kGiB / 2).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      ChoosePool("host:1GiB", NoGpu(), 5 * kGiB / 4).status()));
}

TEST(PoolChoiceTest, ADeviceThatIsNamedIsUsed) {
  EXPECT_THAT(ChoosePool("cuda:0", OneGpu(16 * kGiB), 20 * kGiB)->broker_flags,
              ElementsAre("--device", "cuda:0", "--pool", "4080MiB",
                          "--host-pool", "1632MiB"));
  EXPECT_THAT(ChoosePool("host:400MiB", OneGpu(16 * kGiB), kGiB)->broker_flags,
              ElementsAre("--device", "host:400MiB", "--host-pool", "160MiB"));
}

}  // namespace
}  // namespace gmb::cli
