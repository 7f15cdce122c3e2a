// A GPU's primary context, current for the time of a call.
#include "device/cuda/cuda_context.h"

namespace gmb::device {

absl::StatusOr<std::shared_ptr<const CudaContext>> CudaContext::Retain(
    const CudaDriver* driver, CUdevice device) {
  CUcontext context = nullptr;
  if (absl::Status status =
          GMB_CUDA(*driver, cuDevicePrimaryCtxRetain, &context, device);
      !status.ok()) {
    return status;
  }
  return std::shared_ptr<const CudaContext>(
      new CudaContext(driver, device, context));
}

CudaContext::~CudaContext() { driver_->cuDevicePrimaryCtxRelease_v2(device_); }

ScopedContext::ScopedContext(const CudaContext& context)
    : driver_(context.driver()),
      status_(GMB_CUDA(driver_, cuCtxPushCurrent_v2, context.context_)) {}

ScopedContext::~ScopedContext() {
  CUcontext popped = nullptr;
  if (status_.ok()) driver_.cuCtxPopCurrent_v2(&popped);
}

absl::Status SynchronizeDevice(const CudaDriver& driver, CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  if (absl::Status status =
          GMB_CUDA(driver, cuDevicePrimaryCtxGetState, device, &flags, &active);
      !status.ok() || active == 0) {
    return status;
  }
  absl::StatusOr<std::shared_ptr<const CudaContext>> context =
      CudaContext::Retain(&driver, device);
  if (!context.ok()) return context.status();
  const ScopedContext scope(**context);
  if (!scope.status().ok()) return scope.status();
  return GMB_CUDA(driver, cuCtxSynchronize);
}

}  // namespace gmb::device
