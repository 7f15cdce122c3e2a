#include "bench/reclaim/neighbour_kernel.h"

#include <dlfcn.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"

namespace gmb::bench {
namespace {

constexpr unsigned kBlocks =
    1056;  // 8 on each of an H200's 132 multiprocessors
constexpr unsigned kThreads = 256;
constexpr int kTries = 10;

// Both take the memory, its bytes, and how often to repeat.
// fma: 1,024 dependent multiplications a repeat; the result is stored so that
// it is computed.
// copy: every thread takes 16 bytes, `stride` after the last ones.
constexpr char kKernels[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry fma(.param .u64 memory, .param .u64 bytes, .param .u32 repeats)
{
  .reg .pred %again;
  .reg .u32 %block, %width, %thread, %index, %left, %step;
  .reg .u64 %at, %offset;
  .reg .f32 %x, %y;
  ld.param.u64 %at, [memory];
  ld.param.u32 %left, [repeats];
  cvta.to.global.u64 %at, %at;
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %index, %block, %width, %thread;
  mul.wide.u32 %offset, %index, 4;
  add.u64 %at, %at, %offset;
  cvt.rn.f32.u32 %x, %index;
  mov.f32 %y, 0f3F7FFFFF;
REPEAT:
  mov.u32 %step, 256;
STEP:
  fma.rn.f32 %x, %x, %y, %y;
  fma.rn.f32 %x, %x, %y, %y;
  fma.rn.f32 %x, %x, %y, %y;
  fma.rn.f32 %x, %x, %y, %y;
  sub.u32 %step, %step, 1;
  setp.ne.u32 %again, %step, 0;
  @%again bra STEP;
  sub.u32 %left, %left, 1;
  setp.ne.u32 %again, %left, 0;
  @%again bra REPEAT;
  st.global.f32 [%at], %x;
  ret;
}
.visible .entry copy(.param .u64 memory, .param .u64 bytes, .param .u32 repeats)
{
  .reg .pred %again;
  .reg .u32 %block, %width, %thread, %index, %blocks, %threads, %left;
  .reg .u64 %from, %to, %half, %first, %offset, %stride;
  .reg .u64 %a, %b;
  ld.param.u64 %from, [memory];
  ld.param.u64 %half, [bytes];
  ld.param.u32 %left, [repeats];
  cvta.to.global.u64 %from, %from;
  shr.u64 %half, %half, 1;
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %blocks, %nctaid.x;
  mad.lo.u32 %index, %block, %width, %thread;
  mul.lo.u32 %threads, %blocks, %width;
  mul.wide.u32 %first, %index, 16;
  mul.wide.u32 %stride, %threads, 16;
REPEAT:
  mov.u64 %offset, %first;
STEP:
  add.u64 %to, %from, %offset;
  ld.volatile.global.v2.u64 {%a, %b}, [%to];
  add.u64 %to, %to, %half;
  st.volatile.global.v2.u64 [%to], {%a, %b};
  add.u64 %offset, %offset, %stride;
  setp.lt.u64 %again, %offset, %half;
  @%again bra STEP;
  sub.u32 %left, %left, 1;
  setp.ne.u32 %again, %left, 0;
  @%again bra REPEAT;
  ret;
}
)";

// A function of the driver that only kernels need.
template <typename Function>
Function* FindInDriver(const char* name) {
  static void* const kLibrary = dlopen("libcuda.so.1", RTLD_NOW);
  return kLibrary == nullptr
             ? nullptr
             : reinterpret_cast<Function*>(dlsym(kLibrary, name));
}

}  // namespace

absl::StatusOr<NeighbourKernel> NeighbourKernel::Load(const std::string& name,
                                                      const std::string& uuid,
                                                      void* memory,
                                                      uint64_t bytes) {
  const uint64_t least = uint64_t{kBlocks} * kThreads * 32;
  if (bytes < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("a neighbour's lease has at least ", least, " bytes"));
  }
  const auto driver = device::CudaDriver::Get();
  if (!driver.ok()) return driver.status();
  const auto found = device::FindCudaDevice(**driver, uuid);
  if (!found.ok()) return found.status();
  auto context = device::CudaContext::Retain(*driver, found->device);
  if (!context.ok()) return context.status();
  NeighbourKernel kernel(*std::move(context), memory, bytes);
  if (absl::Status status = kernel.Find(name); !status.ok()) return status;
  return kernel;
}

absl::Status NeighbourKernel::Find(const std::string& name) {
  auto* const load =
      FindInDriver<decltype(cuModuleLoadData)>("cuModuleLoadData");
  auto* const get =
      FindInDriver<decltype(cuModuleGetFunction)>("cuModuleGetFunction");
  launch_ = FindInDriver<decltype(cuLaunchKernel)>("cuLaunchKernel");
  if (load == nullptr || get == nullptr || launch_ == nullptr)
    return absl::FailedPreconditionError("this driver launches no kernels");
  const device::ScopedContext scope(*context_);
  if (!scope.status().ok()) return scope.status();
  CUmodule module = nullptr;
  absl::Status status =
      context_->driver().Check(load(&module, kKernels), "cuModuleLoadData");
  if (!status.ok()) return status;
  return context_->driver().Check(get(&kernel_, module, name.c_str()),
                                  "cuModuleGetFunction");
}

absl::Status NeighbourKernel::Run() const {
  const device::ScopedContext scope(*context_);
  if (!scope.status().ok()) return scope.status();
  void* memory = memory_;
  uint64_t bytes = bytes_;
  uint32_t repeats = repeats_;
  void* arguments[] = {&memory, &bytes, &repeats};
  const absl::Status launched =
      context_->driver().Check(launch_(kernel_, kBlocks, 1, 1, kThreads, 1, 1,
                                       0, nullptr, arguments, nullptr),
                               "cuLaunchKernel");
  if (!launched.ok()) return launched;
  return GMB_CUDA(context_->driver(), cuCtxSynchronize);
}

absl::Status NeighbourKernel::Calibrate(double seconds) {
  // The first ones wake the GPU up.
  for (int i = 0; i < kTries; ++i) {
    const absl::Time start = absl::Now();
    if (absl::Status run = Run(); !run.ok()) return run;
    const double took = absl::ToDoubleSeconds(absl::Now() - start);
    const double wanted = repeats_ * seconds / std::max(took, 1e-6);
    repeats_ = static_cast<uint32_t>(std::clamp(wanted, 1.0, 1e6));
  }
  return absl::OkStatus();
}

}  // namespace gmb::bench
