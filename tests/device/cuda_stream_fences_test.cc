// Fences in streams, on the fake driver: of the device's primary context and of
// others.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "device/allocator.h"
#include "device/devices.h"
#include "tests/device/driver_of_programs.h"
#include "tests/device/fake_cuda/fake_cuda.h"

namespace gmb::device {
namespace {

class CudaStreamFencesTest : public ::testing::Test {
 protected:
  CudaStreamFencesTest()
      : fences_(OpenStreamFences(OpenVmmAllocator("cuda:0").value()->info())
                    .value()) {}
  // Makes a context current that is the program's own.
  static CUcontext NewContext() {
    CUcontext context = nullptr;
    EXPECT_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
    return context;
  }
  static CUstream NewStream() {
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    return stream;
  }
  // Work that is done when somebody waits for it.
  void Submit(CUstream stream) {
    done_ = false;
    EXPECT_EQ(cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(&done_), &kTrue,
                                sizeof(done_), stream),
              CUDA_SUCCESS);
  }

  static constexpr bool kTrue = true;
  const std::unique_ptr<StreamFences> fences_;
  bool done_ = false;
};

TEST_F(CudaStreamFencesTest, AStreamOfAnotherContextHasFencesToo) {
  const CUcontext context = NewContext();
  CUstream stream = NewStream();
  const uint64_t live = FakeCudaLive();
  Submit(stream);
  auto fence = fences_->Record(stream);
  ASSERT_TRUE(fence.ok()) << fence.status();
  EXPECT_FALSE((*fence)->Reached().value());
  EXPECT_TRUE((*fence)->Wait().ok());
  EXPECT_TRUE(done_);
  EXPECT_TRUE((*fence)->Reached().value());
  CUcontext current = nullptr;
  EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, context) << "as before";
  // One event is kept for streams of the device's primary context.
  fence->reset();
  EXPECT_EQ(FakeCudaLive(), live + 1);
  cuCtxDestroy(context);
}

TEST_F(CudaStreamFencesTest, EveryCallForOneMayFailAndLeavesNothingBehind) {
  const CUcontext context = NewContext();
  CUstream stream = NewStream();
  ASSERT_TRUE(fences_->Record(stream).ok());
  const uint64_t live = FakeCudaLive();
  uint64_t k = 0;
  for (const char* failed = ""; failed != nullptr;) {
    FakeCudaFail(++k, CUDA_ERROR_UNKNOWN);
    fences_->Record(stream).status().IgnoreError();
    failed = FakeCudaFailed();
    FakeCudaFail(0, CUDA_SUCCESS);
    EXPECT_EQ(FakeCudaLive(), live) << "call " << k;
    ASSERT_TRUE(fences_->Record(stream).ok()) << "after call " << k;
  }
  EXPECT_GT(k, 6U);
  cuCtxDestroy(context);
}

TEST_F(CudaStreamFencesTest, AllWorkOfThePrimaryContextIsWaitedFor) {
  CUcontext primary = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxPushCurrent(primary), CUDA_SUCCESS);
  CUstream stream = NewStream();
  Submit(stream);
  CUcontext popped = nullptr;
  ASSERT_EQ(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
  EXPECT_TRUE(fences_->WaitForAll().ok());
  EXPECT_TRUE(done_);
  cuStreamDestroy(stream);
  cuDevicePrimaryCtxRelease(0);
}

}  // namespace
}  // namespace gmb::device
