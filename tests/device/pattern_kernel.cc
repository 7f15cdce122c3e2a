// A pattern in more device memory than could be copied to look at.
#include "tests/device/pattern_kernel.h"

#include <dlfcn.h>

#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"

namespace gmb::device {
namespace {

constexpr unsigned kBlocks = 1056;  // 8 on each of 132 multiprocessors
constexpr unsigned kThreads = 256;
constexpr uint64_t kFactor = 0x9E3779B97F4A7C15U;
constexpr uint64_t kZero = 0;  // the factor of a pattern of zeros

// Thread i has the words i, i + threads, i + 2 * threads and so on.
constexpr char kPatternKernels[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry fill(.param .u64 memory, .param .u64 words, .param .u64 seed,
                     .param .u64 factor, .param .u64 counter)
{
  .reg .pred %end;
  .reg .u32 %block, %width, %thread, %index, %blocks, %threads;
  .reg .u64 %at, %i, %words, %seed, %factor, %stride, %offset, %value;
  ld.param.u64 %at, [memory];
  ld.param.u64 %words, [words];
  ld.param.u64 %seed, [seed];
  ld.param.u64 %factor, [factor];
  cvta.to.global.u64 %at, %at;
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %blocks, %nctaid.x;
  mad.lo.u32 %index, %block, %width, %thread;
  mul.lo.u32 %threads, %blocks, %width;
  cvt.u64.u32 %i, %index;
  cvt.u64.u32 %stride, %threads;
NEXT:
  setp.ge.u64 %end, %i, %words;
  @%end bra DONE;
  add.u64 %value, %i, %seed;
  mul.lo.u64 %value, %value, %factor;
  shl.b64 %offset, %i, 3;
  add.u64 %offset, %at, %offset;
  st.global.u64 [%offset], %value;
  add.u64 %i, %i, %stride;
  bra NEXT;
DONE:
  ret;
}
.visible .entry count(.param .u64 memory, .param .u64 words, .param .u64 seed,
                      .param .u64 factor, .param .u64 counter)
{
  .reg .pred %end, %wrong;
  .reg .u32 %block, %width, %thread, %index, %blocks, %threads;
  .reg .u64 %at, %i, %words, %seed, %factor, %stride, %offset, %value;
  .reg .u64 %found, %counter, %sum;
  ld.param.u64 %at, [memory];
  ld.param.u64 %words, [words];
  ld.param.u64 %seed, [seed];
  ld.param.u64 %factor, [factor];
  ld.param.u64 %counter, [counter];
  cvta.to.global.u64 %at, %at;
  cvta.to.global.u64 %counter, %counter;
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %blocks, %nctaid.x;
  mad.lo.u32 %index, %block, %width, %thread;
  mul.lo.u32 %threads, %blocks, %width;
  cvt.u64.u32 %i, %index;
  cvt.u64.u32 %stride, %threads;
  mov.u64 %sum, 0;
NEXT:
  setp.ge.u64 %end, %i, %words;
  @%end bra DONE;
  add.u64 %value, %i, %seed;
  mul.lo.u64 %value, %value, %factor;
  shl.b64 %offset, %i, 3;
  add.u64 %offset, %at, %offset;
  ld.global.u64 %found, [%offset];
  setp.ne.u64 %wrong, %found, %value;
  @%wrong add.u64 %sum, %sum, 1;
  add.u64 %i, %i, %stride;
  bra NEXT;
DONE:
  setp.ne.u64 %wrong, %sum, 0;
  @%wrong red.global.add.u64 [%counter], %sum;
  ret;
}
)";

// The functions that only tests need; null on a driver without it.
template <typename Function>
Function* InDriver(const char* name) {
  static void* const kLibrary = dlopen("libcuda.so.1", RTLD_NOW);
  return kLibrary == nullptr
             ? nullptr
             : reinterpret_cast<Function*>(dlsym(kLibrary, name));
}

}  // namespace

absl::StatusOr<PatternKernel> PatternKernel::Load(const std::string& uuid) {
  const absl::StatusOr<const CudaDriver*> driver = CudaDriver::Get();
  if (!driver.ok()) return driver.status();
  const absl::StatusOr<CudaDevice> device = FindCudaDevice(**driver, uuid);
  if (!device.ok()) return device.status();
  auto context = CudaContext::Retain(*driver, device->device);
  if (!context.ok()) return context.status();
  PatternKernel kernel(*std::move(context));
  if (absl::Status found = kernel.Find(); !found.ok()) return found;
  return kernel;
}

absl::Status PatternKernel::Find() {
  auto* const load = InDriver<decltype(cuModuleLoadData)>("cuModuleLoadData");
  auto* const get =
      InDriver<decltype(cuModuleGetFunction)>("cuModuleGetFunction");
  launch_ = InDriver<decltype(cuLaunchKernel)>("cuLaunchKernel");
  if (load == nullptr || get == nullptr || launch_ == nullptr)
    return absl::UnimplementedError("this driver launches no kernels");
  const CudaDriver& driver = context_->driver();
  const ScopedContext scope(*context_);
  absl::Status status = scope.status();
  CUmodule module = nullptr;
  if (status.ok()) {
    status = driver.Check(load(&module, kPatternKernels), "cuModuleLoadData");
  }
  if (status.ok())
    status = driver.Check(get(&fill_, module, "fill"), "cuModuleGetFunction");
  if (status.ok())
    status = driver.Check(get(&count_, module, "count"), "cuModuleGetFunction");
  if (status.ok())
    status = GMB_CUDA(driver, cuMemAlloc_v2, &counter_, sizeof(uint64_t));
  return status;
}

PatternKernel::~PatternKernel() {
  if (counter_ == 0) return;
  const ScopedContext scope(*context_);
  (void)GMB_CUDA(context_->driver(), cuMemFree_v2, counter_);
}

absl::Status PatternKernel::Run(CUfunction kernel, CUdeviceptr memory,
                                uint64_t bytes, uint64_t seed,
                                uint64_t factor) const {
  const CudaDriver& driver = context_->driver();
  uint64_t words = bytes / sizeof(uint64_t);
  CUdeviceptr counter = counter_;
  void* arguments[] = {&memory, &words, &seed, &factor, &counter};
  const absl::Status launched =
      driver.Check(launch_(kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr,
                           arguments, nullptr),
                   "cuLaunchKernel");
  if (!launched.ok()) return launched;
  return GMB_CUDA(driver, cuCtxSynchronize);
}

absl::Status PatternKernel::Fill(void* memory, uint64_t bytes,
                                 uint64_t seed) const {
  const ScopedContext scope(*context_);
  if (!scope.status().ok()) return scope.status();
  return Run(fill_, reinterpret_cast<CUdeviceptr>(memory), bytes, seed,
             kFactor);
}

absl::StatusOr<uint64_t> PatternKernel::CountWrong(const void* memory,
                                                   uint64_t bytes,
                                                   uint64_t seed) const {
  return Count(memory, bytes, seed, kFactor);
}

absl::StatusOr<uint64_t> PatternKernel::CountNonZero(const void* memory,
                                                     uint64_t bytes) const {
  return Count(memory, bytes, 0, kZero);
}

absl::StatusOr<uint64_t> PatternKernel::Count(const void* memory,
                                              uint64_t bytes, uint64_t seed,
                                              uint64_t factor) const {
  const CudaDriver& driver = context_->driver();
  const ScopedContext scope(*context_);
  uint64_t wrong = 0;
  absl::Status status = scope.status();
  if (status.ok())
    status = GMB_CUDA(driver, cuMemsetD8_v2, counter_, 0, sizeof(wrong));
  if (status.ok()) {
    status =
        Run(count_, reinterpret_cast<CUdeviceptr>(memory), bytes, seed, factor);
  }
  if (status.ok())
    status = GMB_CUDA(driver, cuMemcpyDtoH_v2, &wrong, counter_, sizeof(wrong));
  if (!status.ok()) return status;
  return wrong;
}

}  // namespace gmb::device
