#include "tests/device/spin_kernel.h"

#include <dlfcn.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"
#include "tests/device/driver_of_programs.h"

namespace gmb::device {
namespace {

constexpr uint64_t kSpinNanoseconds = 15'000'000'000;

// Each thread writes the time to a word of its own until the time is up.
constexpr char kSpinKernel[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 memory, .param .u64 nanoseconds)
{
  .reg .pred %again;
  .reg .u32 %block, %width, %thread, %index;
  .reg .u64 %at, %end, %now, %offset;
  ld.param.u64 %at, [memory];
  ld.param.u64 %end, [nanoseconds];
  cvta.to.global.u64 %at, %at;
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %index, %block, %width, %thread;
  mul.wide.u32 %offset, %index, 8;
  add.u64 %at, %at, %offset;
  mov.u64 %now, %globaltimer;
  add.u64 %end, %end, %now;
AGAIN:
  mov.u64 %now, %globaltimer;
  st.volatile.global.u64 [%at], %now;
  setp.lt.u64 %again, %now, %end;
  @%again bra AGAIN;
  ret;
}
)";

// The functions that only tests need.
template <typename Function>
Function* Find(const char* name) {
  static void* const kLibrary = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(kLibrary, name));
}

}  // namespace

absl::Status StartSpinKernel(const std::string& uuid, void* memory) {
  absl::StatusOr<const CudaDriver*> driver = CudaDriver::Get();
  if (!driver.ok()) return driver.status();
  absl::StatusOr<CudaDevice> device = FindCudaDevice(**driver, uuid);
  if (!device.ok()) return device.status();
  auto context = CudaContext::Retain(*driver, device->device);
  if (!context.ok()) return context.status();
  const ScopedContext scope(**context);
  CUmodule module = nullptr;
  CUfunction spin = nullptr;
  absl::Status status =
      (*driver)->Check(Find<decltype(cuModuleLoadData)>("cuModuleLoadData")(
                           &module, kSpinKernel),
                       "cuModuleLoadData");
  if (!status.ok()) return status;
  status = (*driver)->Check(Find<decltype(cuModuleGetFunction)>(
                                "cuModuleGetFunction")(&spin, module, "spin"),
                            "cuModuleGetFunction");
  if (!status.ok()) return status;
  uint64_t nanoseconds = kSpinNanoseconds;
  void* arguments[] = {&memory, &nanoseconds};
  return (*driver)->Check(
      Find<decltype(cuLaunchKernel)>("cuLaunchKernel")(
          spin, 264, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr),
      "cuLaunchKernel");
}

}  // namespace gmb::device
