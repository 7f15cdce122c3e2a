// Map: what both kinds of GPU mappings share.
#include "device/cuda/cuda_mapper.h"

#include "base/status_macros.h"
#include "device/cuda/cuda_device.h"

namespace gmb::device {

absl::Status CudaMapper::Synchronize(absl::Span<const std::string> access) {
  GMB_RETURN_IF_ERROR(SynchronizeDevice(driver(), context_->device()));
  for (const std::string& uuid : access) {
    GMB_ASSIGN_OR_RETURN(const CudaDevice device,
                         FindCudaDevice(driver(), uuid));
    if (device.device == context_->device()) continue;
    GMB_RETURN_IF_ERROR(SynchronizeDevice(driver(), device.device));
  }
  return absl::OkStatus();
}

absl::Status CudaMapper::CopyToHost(void* to, const void* from_device,
                                    uint64_t bytes) {
  const ScopedContext scope(*context_);
  GMB_RETURN_IF_ERROR(scope.status());
  return GMB_CUDA(driver(), cuMemcpyDtoH_v2, to,
                  reinterpret_cast<CUdeviceptr>(from_device), bytes);
}

absl::Status CudaMapper::CopyToDevice(void* to_device, const void* from,
                                      uint64_t bytes) {
  const ScopedContext scope(*context_);
  GMB_RETURN_IF_ERROR(scope.status());
  GMB_RETURN_IF_ERROR(GMB_CUDA(driver(), cuMemcpyHtoD_v2,
                               reinterpret_cast<CUdeviceptr>(to_device), from,
                               bytes));
  // From pageable memory the call returns while the last piece is under way.
  return GMB_CUDA(driver(), cuStreamSynchronize, nullptr);
}

absl::Status CudaMapper::Fill(void* device, uint8_t value, uint64_t bytes) {
  const ScopedContext scope(*context_);
  GMB_RETURN_IF_ERROR(scope.status());
  GMB_RETURN_IF_ERROR(GMB_CUDA(driver(), cuMemsetD8_v2,
                               reinterpret_cast<CUdeviceptr>(device), value,
                               bytes));
  return GMB_CUDA(driver(), cuStreamSynchronize, nullptr);
}

}  // namespace gmb::device
