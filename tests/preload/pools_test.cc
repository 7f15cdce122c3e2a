#include "client/preload/pools.h"

#include <gtest/gtest.h>

#include <optional>

namespace gmb::preload {
namespace {

constexpr CUdevice kDevice = 3;

CUmemoryPool APool() { return reinterpret_cast<CUmemoryPool>(intptr_t{8}); }

class PoolsTest : public ::testing::Test {
 protected:
  PoolsTest() {
    // No context: no device, and no pool that is its default one.
    driver_.cuCtxGetDevice = [](CUdevice*) {
      return CUDA_ERROR_INVALID_CONTEXT;
    };
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = kDevice;
    pools_.Created(APool(), properties);
  }
  std::optional<CUdevice> Device() { return pools_.DeviceOf(driver_, APool()); }

  Driver driver_;
  Pools pools_;
};

TEST_F(PoolsTest, OneThatIsDestroyedIsServedNoMore) {
  EXPECT_EQ(Device(), kDevice);
  EXPECT_EQ(pools_.Forget(APool()), kDevice);
  EXPECT_EQ(Device(), std::nullopt);
  EXPECT_EQ(pools_.Forget(APool()), std::nullopt);
}

TEST_F(PoolsTest, OneThatTheDriverDidNotDestroyIsServedAgain) {
  EXPECT_EQ(pools_.Forget(APool()), kDevice);
  pools_.NotDestroyed(APool(), kDevice);
  EXPECT_EQ(Device(), kDevice);
}

}  // namespace
}  // namespace gmb::preload
