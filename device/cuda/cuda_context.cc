// A GPU's primary context, current for the time of a call.
#include "device/cuda/cuda_context.h"

#include "base/status_macros.h"

namespace gmb::device {

absl::StatusOr<std::shared_ptr<const CudaContext>> CudaContext::Retain(
    const CudaDriver* driver, CUdevice device) {
  CUcontext context = nullptr;
  GMB_RETURN_IF_ERROR(
      GMB_CUDA(*driver, cuDevicePrimaryCtxRetain, &context, device));
  return std::shared_ptr<const CudaContext>(
      new CudaContext(driver, device, context));
}

CudaContext::~CudaContext() { driver_->cuDevicePrimaryCtxRelease_v2(device_); }

ScopedContext::ScopedContext(const CudaContext& context)
    : ScopedContext(context.driver(), context.context_) {}

ScopedContext::ScopedContext(const CudaDriver& driver, CUcontext context)
    : driver_(driver),
      status_(GMB_CUDA(driver_, cuCtxPushCurrent_v2, context)) {}

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
  GMB_ASSIGN_OR_RETURN(std::shared_ptr<const CudaContext> context,
                       CudaContext::Retain(&driver, device));
  const ScopedContext scope(*context);
  GMB_RETURN_IF_ERROR(scope.status());
  return GMB_CUDA(driver, cuCtxSynchronize);
}

}  // namespace gmb::device
