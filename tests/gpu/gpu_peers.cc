#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/gpu/driver_call.h"

// Two GPUs of one process use each other's memory, natively and under `gmb run`:
//   gpu_peers
// It does as PyTorch does for x.to("cuda:1") and x.t().to("cuda:1"): it enables
// peers, copies by the plain cuMemcpyAsync, and has a kernel of one GPU store
// into the other's memory. A line for each; ends with how many were wrong, and
// with 77 where these GPUs do not reach each other. Lines that begin with "?" are
// what nvidia-smi says each GPU has in use, before and after memory of the first
// one alone.

namespace {

using gmb::test::Find;
using gmb::test::Must;

constexpr size_t kBytes = size_t{64} << 20;
constexpr size_t kSmall = size_t{64} << 10;
constexpr size_t kLarge = size_t{1} << 30;

// Each word of the block becomes `value`.
constexpr char kStore[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry store(.param .u64 block, .param .u32 words, .param .u32 value) {
  .reg .u64 %b, %o; .reg .u32 %i, %n, %w, %v, %t; .reg .pred %p;
  ld.param.u64 %b, [block]; ld.param.u32 %w, [words]; ld.param.u32 %v, [value];
  mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x;
  mad.lo.u32 %i, %i, %n, %t;
  setp.ge.u32 %p, %i, %w;
  @%p ret;
  mul.wide.u32 %o, %i, 4;
  add.u64 %b, %b, %o;
  st.global.u32 [%b], %v;
  ret;
})";

int wrong = 0;

void Say(const char* what, bool right) {
  wrong += right ? 0 : 1;
  std::printf("%s: %s\n", what, right ? "right" : "WRONG");
}

void SayUsed(const char* when) {
  FILE* const smi =
      popen("nvidia-smi --query-gpu=memory.used --format=csv,noheader", "r");
  if (smi == nullptr) return;
  char line[64];
  for (int i = 0; std::fgets(line, sizeof(line), smi) != nullptr; ++i) {
    std::fprintf(stderr, "? %s, in use of GPU %d: %s", when, i, line);
  }
  pclose(smi);
}

// One GPU with its primary context.
struct Gpu {
  explicit Gpu(CUdevice device) {
    GMB_CALL(cuDevicePrimaryCtxRetain, &context, device);
    Use();
    GMB_CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    CUmodule module = nullptr;
    GMB_CALL(cuModuleLoadData, &module, kStore);
    GMB_CALL(cuModuleGetFunction, &store, module, "store");
  }
  void Use() const { GMB_CALL(cuCtxSetCurrent, context); }
  [[nodiscard]] CUdeviceptr Allocate(size_t bytes) const {
    Use();
    CUdeviceptr block = 0;
    GMB_CALL(cuMemAlloc, &block, bytes);
    return block;
  }
  // The kernel is done when it returns.
  [[nodiscard]] CUresult Store(CUdeviceptr block, size_t bytes,
                               uint32_t value) const {
    Use();
    static const auto launch =
        Find<decltype(&cuLaunchKernel)>("cuLaunchKernel", 11020);
    static const auto wait =
        Find<decltype(&cuStreamSynchronize)>("cuStreamSynchronize", 11020);
    auto words = static_cast<uint32_t>(bytes / sizeof(uint32_t));
    void* arguments[] = {&block, &words, &value};
    const CUresult result = launch(store, (words + 255) / 256, 1, 1, 256, 1, 1,
                                   0, stream, arguments, nullptr);
    return result == CUDA_SUCCESS ? wait(stream) : result;
  }
  [[nodiscard]] CUresult Copy(CUdeviceptr to, CUdeviceptr from,
                              size_t bytes) const {
    Use();
    static const auto copy =
        Find<decltype(&cuMemcpyAsync)>("cuMemcpyAsync", 11020);
    static const auto wait =
        Find<decltype(&cuStreamSynchronize)>("cuStreamSynchronize", 11020);
    const CUresult result = copy(to, from, bytes, stream);
    return result == CUDA_SUCCESS ? wait(stream) : result;
  }
  [[nodiscard]] bool Has(CUdeviceptr block, size_t bytes,
                         uint32_t value) const {
    Use();
    std::vector<uint32_t> found(bytes / sizeof(uint32_t));
    static const auto get =
        Find<decltype(&cuMemcpyDtoH)>("cuMemcpyDtoH", 11020);
    if (get(found.data(), block, bytes) != CUDA_SUCCESS) return false;
    for (const uint32_t word : found) {
      if (word != value) return false;
    }
    return true;
  }

  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUfunction store = nullptr;
};

// Memory of `of`, used by `by`.
void Try(const Gpu& of, const Gpu& by, size_t bytes) {
  const CUdeviceptr theirs = of.Allocate(bytes);
  const CUdeviceptr own = by.Allocate(bytes);
  Must(of.Store(theirs, bytes, 3), "a store to its own memory");
  Say("a copy by the GPU that has it",
      of.Copy(own, theirs, bytes) == CUDA_SUCCESS && by.Has(own, bytes, 3));
  Must(by.Store(own, bytes, 5), "a store to its own memory");
  Say("a copy by the GPU that wants it",
      by.Copy(theirs, own, bytes) == CUDA_SUCCESS && of.Has(theirs, bytes, 5));
  Say("a kernel that stores into the other's memory",
      by.Store(theirs, bytes, 7) == CUDA_SUCCESS && of.Has(theirs, bytes, 7));
  of.Use();
  GMB_CALL(cuMemFree, theirs);
  by.Use();
  GMB_CALL(cuMemFree, own);
}

bool IsActive(CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  GMB_CALL(cuDevicePrimaryCtxGetState, device, &flags, &active);
  return active != 0;
}

}  // namespace

int main() {
  GMB_CALL(cuInit, 0);
  int count = 0;
  int can = 0;
  int back = 0;
  GMB_CALL(cuDeviceGetCount, &count);
  if (count >= 2) {
    GMB_CALL(cuDeviceCanAccessPeer, &can, 0, 1);
    GMB_CALL(cuDeviceCanAccessPeer, &back, 1, 0);
  }
  if (can == 0 || back == 0) {
    std::fprintf(stderr, "no two GPUs that reach each other's memory\n");
    return 77;
  }
  const Gpu first(0);
  SayUsed("before");
  const CUdeviceptr large = first.Allocate(kLarge);
  SayUsed("after 1 GiB of GPU 0");
  Say("a GPU that is not used has no context", !IsActive(1));
  GMB_CALL(cuMemFree, large);
  const Gpu second(1);
  GMB_CALL(cuCtxEnablePeerAccess, first.context, 0);
  first.Use();
  GMB_CALL(cuCtxEnablePeerAccess, second.context, 0);
  for (const size_t bytes : {kBytes, kSmall}) {
    Try(first, second, bytes);
    Try(second, first, bytes);
  }
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
