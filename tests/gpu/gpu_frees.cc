#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/gpu/driver_call.h"

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

// A kernel of the current context that runs for a second, from now on.
class Kernel {
 public:
  Kernel(CUfunction spin, CUstream stream, CUdeviceptr block) {
    void* flag = nullptr;
    GMB_CALL(cuMemHostAlloc, &flag, sizeof(uint32_t),
             CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
    flag_ = static_cast<volatile uint32_t*>(flag);
    *flag_ = 0;
    CUdeviceptr at = 0;
    GMB_CALL(cuMemHostGetDevicePointer, &at, flag, 0);
    void* arguments[] = {&at, &block};
    GMB_CALL(cuLaunchKernel, spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments,
             nullptr);
    ends_ = std::thread([this] {
      std::this_thread::sleep_for(kRuns);
      *flag_ = 1;
    });
  }
  ~Kernel() {
    ends_.join();
    GMB_CALL(cuCtxSynchronize);
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
  GMB_CALL(cuMemAlloc, &block, bytes);
  return block;
}

}  // namespace

int main() {
  GMB_CALL(cuInit, 0);
  CUcontext primary = nullptr;
  CUcontext other = nullptr;
  GMB_CALL(cuDevicePrimaryCtxRetain, &primary, 0);
  GMB_CALL(cuCtxSetCurrent, primary);
  CUmodule module = nullptr;
  CUfunction spin = nullptr;
  GMB_CALL(cuModuleLoadData, &module, kSpin);
  GMB_CALL(cuModuleGetFunction, &spin, module, "spin");
  CUstream stream = nullptr;
  CUstream captured = nullptr;
  GMB_CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  GMB_CALL(cuStreamCreate, &captured, CU_STREAM_NON_BLOCKING);
  const CUdeviceptr held = Allocate(kLarge);
  // Once before: modules and first uses wait for work.
  { const Kernel first(spin, stream, held); }
  {
    GMB_CALL(cuMemFree, Allocate(kSmall));
    const Kernel kernel(spin, stream, held);
    Say("an allocation of another size", false, [] { Allocate(2 * kLarge); });
  }
  {
    GMB_CALL(cuMemFree, Allocate(kSmall));
    const Kernel kernel(spin, stream, held);
    std::this_thread::sleep_for(kKept);
    Say("a capture that begins later", false, [&] {
      GMB_CALL(cuStreamBeginCapture, captured, CU_STREAM_CAPTURE_MODE_GLOBAL);
    });
    CUgraph graph = nullptr;
    GMB_CALL(cuStreamEndCapture, captured, &graph);
  }
  const CUdeviceptr used = Allocate(kLarge);
  {
    const Kernel kernel(spin, stream, used);
    Say("a free", true, [&] { GMB_CALL(cuMemFree, used); });
  }
  const CUdeviceptr again = Allocate(kLarge);
  static const auto create =
      gmb::test::Find<CUresult (*)(CUcontext*, unsigned, CUdevice)>(
          "cuCtxCreate", 11020);
  gmb::test::Must(create(&other, 0, 0), "cuCtxCreate");
  GMB_CALL(cuCtxSetCurrent, primary);
  {
    const Kernel kernel(spin, stream, again);
    GMB_CALL(cuCtxSetCurrent, other);
    Say("a free in another context than the kernel's", true,
        [&] { GMB_CALL(cuMemFree, again); });
    GMB_CALL(cuCtxSetCurrent, primary);
  }
  GMB_CALL(cuCtxSetCurrent, other);
  GMB_CALL(cuModuleLoadData, &module, kSpin);
  CUfunction others_spin = nullptr;
  GMB_CALL(cuModuleGetFunction, &others_spin, module, "spin");
  CUstream others = nullptr;
  GMB_CALL(cuStreamCreate, &others, CU_STREAM_NON_BLOCKING);
  const CUdeviceptr own = Allocate(kLarge);
  GMB_CALL(cuCtxSetCurrent, primary);
  const CUdeviceptr unused = Allocate(kLarge);
  const CUdeviceptr unused_too = Allocate(kLarge);
  GMB_CALL(cuCtxSetCurrent, other);
  { const Kernel first(others_spin, others, own); }
  {
    const Kernel kernel(others_spin, others, own);
    GMB_CALL(cuCtxSetCurrent, primary);
    Say("a free beside another context's kernel", false,
        [&] { GMB_CALL(cuMemFree, unused); });
    GMB_CALL(cuCtxSetCurrent, other);
    Say("the same, with the kernel's context current", false,
        [&] { GMB_CALL(cuMemFree, unused_too); });
  }
  // The kernel may use the block: the driver's answer is not documented.
  GMB_CALL(cuCtxSetCurrent, primary);
  const CUdeviceptr peers = Allocate(kLarge);
  GMB_CALL(cuCtxSetCurrent, other);
  static const auto enable = gmb::test::Find<decltype(&cuCtxEnablePeerAccess)>(
      "cuCtxEnablePeerAccess", 11020);
  const CUresult enabled = enable(primary, 0);
  std::fprintf(stderr, "? peer access of a context of the same device: %d\n",
               enabled);
  if (enabled == CUDA_SUCCESS) {
    const Kernel kernel(others_spin, others, peers);
    GMB_CALL(cuCtxSetCurrent, primary);
    Say("a free of what another context's kernel may use as a peer", true,
        [&] { GMB_CALL(cuMemFree, peers); });
    GMB_CALL(cuCtxSetCurrent, other);
  }
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
