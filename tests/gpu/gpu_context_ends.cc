#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/gpu/driver_call.h"

// Which memory of a program goes back when one of its contexts ends,
// natively and under `gmb run`:
//   gpu_context_ends
// A line for each kind of memory and each end, from what cuMemGetInfo says is
// free before and after it; ends with how many were not as the driver does it.

namespace {

using gmb::test::Find;
using gmb::test::Must;

// Far more than a context itself takes.
constexpr size_t kBytes = size_t{3} << 30;
constexpr CUdevice kDevice = 0;

int wrong = 0;

// The device's primary context, current in the calling thread.
void UsePrimary() {
  CUcontext primary = nullptr;
  GMB_CALL(cuDevicePrimaryCtxRetain, &primary, kDevice);
  GMB_CALL(cuCtxSetCurrent, primary);
}

// With the primary context current.
size_t FreeBytes() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  GMB_CALL(cuMemGetInfo, &free_bytes, &total_bytes);
  return free_bytes;
}

CUdeviceptr Allocate() {
  CUdeviceptr block = 0;
  GMB_CALL(cuMemAlloc, &block, kBytes);
  return block;
}

CUdeviceptr AllocateOn(CUstream stream) {
  CUdeviceptr block = 0;
  GMB_CALL(cuMemAllocAsync, &block, kBytes, stream);
  GMB_CALL(cuStreamSynchronize, stream);
  return block;
}

CUcontext MakeContext() {
  static const auto create =
      Find<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate", 11020);
  CUcontext made = nullptr;
  Must(create(&made, 0, kDevice), "cuCtxCreate");
  return made;
}

CUgreenCtx MakeGreen() {
  CUdevResource all{};
  CUdevResourceDesc described = nullptr;
  CUgreenCtx green = nullptr;
  GMB_CALL_SINCE(12040, cuDeviceGetDevResource, kDevice, &all,
                 CU_DEV_RESOURCE_TYPE_SM);
  GMB_CALL_SINCE(12040, cuDevResourceGenerateDesc, &described, &all, 1);
  GMB_CALL_SINCE(12040, cuGreenCtxCreate, &green, described, kDevice,
                 CU_GREEN_CTX_DEFAULT_STREAM);
  return green;
}

// `end` leaves the primary context current.
template <typename End>
void Say(const char* what, bool goes_back, End end) {
  const size_t before = FreeBytes();
  end();
  const size_t after = FreeBytes();
  const bool went = after > before + kBytes / 2;
  const bool right = went == goes_back;
  wrong += right ? 0 : 1;
  std::printf("%s: %s, %s\n", what, went ? "goes back" : "stays",
              right ? "right" : "WRONG");
  std::fprintf(stderr, "? %s: %zu MiB free before, %zu after\n", what,
               before >> 20, after >> 20);
}

// The answer to a free of what stayed.
void FreeAfter(CUdeviceptr block) {
  static const auto free = Find<decltype(&cuMemFree)>("cuMemFree", 11020);
  std::fprintf(stderr, "? a free of it then: %d\n", free(block));
}

void Reset() {
  GMB_CALL(cuDevicePrimaryCtxReset, kDevice);
  UsePrimary();
}

}  // namespace

int main() {
  GMB_CALL(cuInit, 0);
  UsePrimary();
  CUcontext primary = nullptr;
  GMB_CALL(cuCtxGetCurrent, &primary);
  {
    const CUcontext made = MakeContext();
    const CUdeviceptr block = Allocate();
    GMB_CALL(cuCtxSetCurrent, primary);
    Say("memory of a context that is destroyed", true,
        [&] { GMB_CALL(cuCtxDestroy, made); });
    FreeAfter(block);
  }
  {
    const CUcontext made = MakeContext();
    CUstream stream = nullptr;
    GMB_CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    const CUdeviceptr block = AllocateOn(stream);
    GMB_CALL(cuCtxSetCurrent, primary);
    Say("a pool's memory, its stream's context destroyed", false,
        [&] { GMB_CALL(cuCtxDestroy, made); });
    FreeAfter(block);
  }
  {
    const CUgreenCtx green = MakeGreen();
    CUcontext of_green = nullptr;
    GMB_CALL_SINCE(12040, cuCtxFromGreenCtx, &of_green, green);
    GMB_CALL(cuCtxSetCurrent, of_green);
    const CUdeviceptr block = Allocate();
    GMB_CALL(cuCtxSetCurrent, primary);
    Say("memory of a green context that is destroyed", false,
        [&] { GMB_CALL_SINCE(12040, cuGreenCtxDestroy, green); });
    FreeAfter(block);
  }
  {
    const CUdeviceptr block = Allocate();
    Say("memory of the primary context, which is reset", true, Reset);
    FreeAfter(block);
  }
  {
    CUstream stream = nullptr;
    GMB_CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    const CUdeviceptr block = AllocateOn(stream);
    Say("a pool's memory, the primary context reset", false, Reset);
    FreeAfter(block);
  }
  {
    GMB_CALL(cuCtxGetCurrent, &primary);
    const CUcontext made = MakeContext();
    const CUdeviceptr block = Allocate();
    GMB_CALL(cuCtxSetCurrent, primary);
    Say("memory of another context than the primary one, which is reset", false,
        Reset);
    FreeAfter(block);
    GMB_CALL(cuCtxDestroy, made);
  }
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
