#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/gpu/driver_lookup.h"

// Which calls wait for a kernel that runs meanwhile, natively and under
// `gmb run`:
//   gpu_frees
// The kernel ends when the host says so, after a second; so a call that waits
// for it takes about as long. After a block was freed, an allocation of another
// size and a capture that begins do not wait. A free waits, also where another
// context than the kernel's is current: the kernel may use the block. A line for
// each; ends with how many were not so.

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSmall = size_t{4} << 20;
constexpr size_t kLarge = size_t{8} << 20;
constexpr auto kRuns = std::chrono::seconds(1);
// Longer than what was freed is kept for.
constexpr auto kKept = std::chrono::milliseconds(400);

// Runs until the word is not 0, and then writes it to the block.
constexpr char kSpin[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 flag, .param .u64 block) {
  .reg .u64 %f, %b; .reg .u32 %v; .reg .pred %p;
  ld.param.u64 %f, [flag]; ld.param.u64 %b, [block];
again:
  ld.volatile.global.u32 %v, [%f];
  setp.eq.u32 %p, %v, 0;
  @%p bra again;
  st.global.u32 [%b], %v;
  ret;
})";

template <typename Function>
Function Find(const char* name, int version) {
  return reinterpret_cast<Function>(gmb::test::FindInDriver(name, version));
}
void Must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "gpu_frees: %s: %d\n", what, result);
  std::exit(1);
}
#define MUST(name, ...)                                                 \
  do {                                                                  \
    static const auto function = Find<decltype(&(name))>(#name, 11020); \
    Must(function(__VA_ARGS__), #name);                                 \
  } while (false)

// A kernel of the current context that runs for a second, from now on.
class Kernel {
 public:
  Kernel(CUfunction spin, CUstream stream, CUdeviceptr block) {
    void* flag = nullptr;
    MUST(cuMemHostAlloc, &flag, sizeof(uint32_t),
         CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
    flag_ = static_cast<volatile uint32_t*>(flag);
    *flag_ = 0;
    CUdeviceptr at = 0;
    MUST(cuMemHostGetDevicePointer, &at, flag, 0);
    void* arguments[] = {&at, &block};
    MUST(cuLaunchKernel, spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
    ends_ = std::thread([this] {
      std::this_thread::sleep_for(kRuns);
      *flag_ = 1;
    });
  }
  ~Kernel() {
    ends_.join();
    MUST(cuCtxSynchronize);
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

 private:
  volatile uint32_t* flag_ = nullptr;  // never freed: that may wait
  std::thread ends_;
};

int wrong = 0;

template <typename Call>
void Say(const char* what, bool waits, Call call) {
  const auto began = Clock::now();
  call();
  const double took =
      std::chrono::duration<double, std::milli>(Clock::now() - began).count();
  const bool right = waits ? took > 500 : took < 500;
  wrong += right ? 0 : 1;
  std::printf("%s: %s, %s\n", what, took > 500 ? "waits" : "does not wait",
              right ? "right" : "WRONG");
  std::fprintf(stderr, "? %s: %.2f ms\n", what, took);
}

CUdeviceptr Allocate(size_t bytes) {
  CUdeviceptr block = 0;
  MUST(cuMemAlloc, &block, bytes);
  return block;
}

}  // namespace

int main() {
  MUST(cuInit, 0);
  CUcontext primary = nullptr;
  CUcontext other = nullptr;
  MUST(cuDevicePrimaryCtxRetain, &primary, 0);
  MUST(cuCtxSetCurrent, primary);
  CUmodule module = nullptr;
  CUfunction spin = nullptr;
  MUST(cuModuleLoadData, &module, kSpin);
  MUST(cuModuleGetFunction, &spin, module, "spin");
  CUstream stream = nullptr;
  CUstream captured = nullptr;
  MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  MUST(cuStreamCreate, &captured, CU_STREAM_NON_BLOCKING);
  const CUdeviceptr held = Allocate(kLarge);
  // Once before: modules and first uses wait for work.
  { const Kernel first(spin, stream, held); }
  {
    MUST(cuMemFree, Allocate(kSmall));
    const Kernel kernel(spin, stream, held);
    Say("an allocation of another size", false, [] { Allocate(2 * kLarge); });
  }
  {
    MUST(cuMemFree, Allocate(kSmall));
    const Kernel kernel(spin, stream, held);
    std::this_thread::sleep_for(kKept);
    Say("a capture that begins later", false, [&] {
      MUST(cuStreamBeginCapture, captured, CU_STREAM_CAPTURE_MODE_GLOBAL);
    });
    CUgraph graph = nullptr;
    MUST(cuStreamEndCapture, captured, &graph);
  }
  const CUdeviceptr used = Allocate(kLarge);
  {
    const Kernel kernel(spin, stream, used);
    Say("a free", true, [&] { MUST(cuMemFree, used); });
  }
  const CUdeviceptr again = Allocate(kLarge);
  static const auto create =
      Find<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate", 11020);
  Must(create(&other, 0, 0), "cuCtxCreate");
  MUST(cuCtxSetCurrent, primary);
  {
    const Kernel kernel(spin, stream, again);
    MUST(cuCtxSetCurrent, other);
    Say("a free in another context than the kernel's", true,
        [&] { MUST(cuMemFree, again); });
    MUST(cuCtxSetCurrent, primary);
  }
  // Of this one the driver's answer is not documented: it is shown.
  MUST(cuCtxSetCurrent, other);
  MUST(cuModuleLoadData, &module, kSpin);
  MUST(cuModuleGetFunction, &spin, module, "spin");
  CUstream others = nullptr;
  MUST(cuStreamCreate, &others, CU_STREAM_NON_BLOCKING);
  const CUdeviceptr own = Allocate(kLarge);
  MUST(cuCtxSetCurrent, primary);
  const CUdeviceptr unused = Allocate(kLarge);
  MUST(cuCtxSetCurrent, other);
  {
    const Kernel kernel(spin, others, own);
    MUST(cuCtxSetCurrent, primary);
    const auto began = Clock::now();
    MUST(cuMemFree, unused);
    std::fprintf(stderr, "? a free beside another context's kernel: %.2f ms\n",
                 std::chrono::duration<double, std::milli>(Clock::now() - began)
                     .count());
    MUST(cuCtxSetCurrent, other);
  }
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
