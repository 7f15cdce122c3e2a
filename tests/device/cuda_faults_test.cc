#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda/cuda_status.h"
#include "device/devices.h"
#include "tests/device/fake_cuda/fake_cuda.h"
#include "tests/device/remote_mapper.h"

// The CUDA devices when driver calls fail, on the fake driver.

namespace gmb::device {
namespace {

constexpr uint64_t kSlab = uint64_t{2} << 20;

// Creates, imports, maps and gives back two slabs of a vmm device, in one
// process.
absl::Status RunVmm() {
  auto allocator = OpenVmmAllocator("cuda:0");
  if (!allocator.ok()) return allocator.status();
  auto mapper = OpenMapper((*allocator)->info());
  if (!mapper.ok()) return mapper.status();
  auto range = (*mapper)->Reserve(3 * kSlab, {}, Protection::kReadWrite);
  if (!range.ok()) return range.status();
  std::vector<ShareableHandle> handles;
  std::vector<SlabKey> keys;
  for (const uint64_t bytes : {kSlab, 2 * kSlab}) {
    absl::StatusOr<CreatedSlab> slab = (*allocator)->Create(bytes);
    if (!slab.ok()) return slab.status();
    handles.push_back(std::move(slab->exported));
    keys.push_back(slab->key);
  }
  absl::StatusOr<SlabKey> imported = (*allocator)->Import(handles[0], kSlab);
  if (!imported.ok()) return imported.status();
  keys.push_back(*imported);
  absl::Status status = (*range)->Map(std::move(handles), {kSlab, 2 * kSlab});
  if (status.ok()) status = (*mapper)->Fill((*range)->data(), 1, 3 * kSlab);
  char byte = 0;
  if (status.ok()) status = (*mapper)->CopyToHost(&byte, (*range)->data(), 1);
  if (status.ok()) {
    status = (*mapper)->CopyToDevice((*range)->data(), &byte, 1);
  }
  if (status.ok()) status = (*mapper)->Synchronize({(*mapper)->info().uuid});
  if (status.ok()) status = (*range)->Unmap();
  for (const SlabKey key : keys) status.Update((*allocator)->Destroy(key));
  status.Update((*allocator)->FreeBytes().status());
  return status;
}

absl::Status RunIpc() {
  auto allocator = OpenIpcAllocator("cuda:0");
  if (!allocator.ok()) return allocator.status();
  absl::StatusOr<CreatedSlab> slab = (*allocator)->Create(kSlab);
  if (!slab.ok()) return slab.status();
  return (*allocator)->Destroy(slab->key);
}

uint64_t FreeBytes() {
  return OpenVmmAllocator("cuda:0").value()->FreeBytes().value();
}

// Every driver call in turn fails once: the error is reported and nothing is
// left behind, neither in the driver nor in descriptors.
void FailEachCall(absl::Status (*run)(), CUresult failure,
                  absl::StatusCode expected) {
  ASSERT_TRUE(run().ok());
  const uint64_t fds = CountOpenFds();
  const uint64_t free_bytes = FreeBytes();
  uint64_t k = 0;
  for (;;) {
    FakeCudaFail(++k, failure);
    const absl::Status status = run();
    const char* const failed = FakeCudaFailed();
    FakeCudaFail(0, CUDA_SUCCESS);
    EXPECT_EQ(FakeCudaLive(), 0) << "call " << k << ": " << failed;
    // (The fake driver looks for memory given back when asked what is free.)
    EXPECT_EQ(FreeBytes(), free_bytes) << "call " << k << ": " << failed;
    EXPECT_EQ(CountOpenFds(), fds) << "call " << k << ": " << failed;
    if (failed == nullptr) break;  // fewer than k calls are made
    // Leaving a context and closing at the end have no caller to tell.
    if (!status.ok()) {
      EXPECT_EQ(status.code(), expected) << failed << ": " << status;
      EXPECT_NE(status.message().find("FAKE_ERROR"), std::string::npos);
    }
    ASSERT_TRUE(run().ok()) << "after " << failed;
  }
  EXPECT_GT(k, 10);
}

TEST(CudaFaults, EveryVmmCallMayFailAndLeavesNothingBehind) {
  FailEachCall(RunVmm, CUDA_ERROR_UNKNOWN, absl::StatusCode::kInternal);
  FailEachCall(RunVmm, CUDA_ERROR_OUT_OF_MEMORY,
               absl::StatusCode::kResourceExhausted);
  FailEachCall(RunVmm, CUDA_ERROR_ILLEGAL_ADDRESS,
               absl::StatusCode::kUnavailable);
}

TEST(CudaFaults, EveryIpcCallMayFailAndLeavesNothingBehind) {
  FailEachCall(RunIpc, CUDA_ERROR_UNKNOWN, absl::StatusCode::kInternal);
  FailEachCall(RunIpc, CUDA_ERROR_OUT_OF_MEMORY,
               absl::StatusCode::kResourceExhausted);
}

TEST(CudaFaults, ASlabOfAnotherGpuIsNotImported) {
  ASSERT_EQ(setenv("FAKE_CUDA_DEVICES", "2", 1), 0);
  auto first = OpenVmmAllocator("cuda:0");
  auto second = OpenVmmAllocator("cuda:1");
  ASSERT_EQ(unsetenv("FAKE_CUDA_DEVICES"), 0);
  ASSERT_TRUE(first.ok() && second.ok());
  absl::StatusOr<CreatedSlab> slab = (*first)->Create(kSlab);
  ASSERT_TRUE(slab.ok()) << slab.status();
  const uint64_t live = FakeCudaLive();
  EXPECT_EQ((*second)->Import(slab->exported, kSlab).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FakeCudaLive(), live);
  EXPECT_TRUE((*first)->Import(slab->exported, kSlab).ok());
}

TEST(CudaFaults, SynchronisingPrecedesUnmapping) {
  auto allocator = OpenVmmAllocator("cuda:0");
  ASSERT_TRUE(allocator.ok());
  auto mapper = OpenMapper((*allocator)->info());
  auto range = (*mapper)->Reserve(kSlab, {}, Protection::kReadWrite);
  absl::StatusOr<CreatedSlab> slab = (*allocator)->Create(kSlab);
  std::vector<ShareableHandle> handles;
  handles.push_back(std::move(slab->exported));
  ASSERT_TRUE((*range)->Map(std::move(handles), {kSlab}).ok());
  for (uint64_t k = 1;; ++k) {  // until the failing call is the synchronise
    FakeCudaFail(k, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    const absl::Status status = (*range)->Unmap();
    const std::string failed = FakeCudaFailed() ? FakeCudaFailed() : "";
    FakeCudaFail(0, CUDA_SUCCESS);
    ASSERT_NE(failed, "cuMemUnmap") << "unmapped before it was quiet";
    ASSERT_NE(failed, "");
    if (failed != "cuCtxSynchronize") continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    break;
  }
  // Still mapped and usable: the caller may try again later.
  EXPECT_TRUE((*mapper)->Fill((*range)->data(), 7, kSlab).ok());
  EXPECT_TRUE((*range)->Unmap().ok());
}

TEST(CudaFaults, NamesFindDevices) {
  const CudaProbe probe = ProbeCuda();
  EXPECT_EQ(probe.problem, "");
  ASSERT_EQ(probe.gpus.size(), 1);
  EXPECT_EQ(probe.gpus[0].uuid, "GPU-fafafafa-fafa-fafa-fafa-fafafafafafa");
  EXPECT_TRUE(OpenVmmAllocator(probe.gpus[0].uuid).ok());
  EXPECT_TRUE(
      OpenVmmAllocator("gpu-FAFAFAFA-fafa-fafa-fafa-fafafafafafa").ok());
  for (const char* name :
       {"cuda:1", "cuda:", "cuda:-1", "cuda:x", "", "GPU-"}) {
    EXPECT_EQ(OpenVmmAllocator(name).status().code(),
              absl::StatusCode::kNotFound)
        << name;
  }
}

TEST(CudaFaults, ErrorsKeepTheirMeaning) {
  const auto code = [](CUresult result) {
    return CudaStatus(result, "call", "NAME").code();
  };
  EXPECT_TRUE(CudaStatus(CUDA_SUCCESS, "call", "").ok());
  EXPECT_EQ(code(CUDA_ERROR_OUT_OF_MEMORY),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(CUDA_ERROR_INVALID_DEVICE), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(CUDA_ERROR_ECC_UNCORRECTABLE), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(CUDA_ERROR_CONTEXT_IS_DESTROYED),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(CUDA_ERROR_NO_DEVICE), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(CUDA_ERROR_UNKNOWN), absl::StatusCode::kInternal);
  EXPECT_EQ(CudaStatus(CUDA_ERROR_UNKNOWN, "cuX", "NAME").message(),
            "cuX: NAME (999)");
}

}  // namespace
}  // namespace gmb::device
