// Map: what both kinds of GPU mappings share.
#include "device/cuda/cuda_mapper.h"

#include "device/cuda/cuda_device.h"

namespace gmb::device {

absl::Status CudaMapper::Synchronize(absl::Span<const std::string> access) {
  if (absl::Status status = SynchronizeDevice(driver(), context_->device());
      !status.ok()) {
    return status;
  }
  for (const std::string& uuid : access) {
    const absl::StatusOr<CudaDevice> device = FindCudaDevice(driver(), uuid);
    if (!device.ok()) return device.status();
    if (device->device == context_->device()) continue;
    if (absl::Status status = SynchronizeDevice(driver(), device->device);
        !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status CudaMapper::CopyToHost(void* to, const void* from_device,
                                    uint64_t bytes) {
  const ScopedContext scope(*context_);
  if (!scope.status().ok()) return scope.status();
  return GMB_CUDA(driver(), cuMemcpyDtoH_v2, to,
                  reinterpret_cast<CUdeviceptr>(from_device), bytes);
}

absl::Status CudaMapper::CopyToDevice(void* to_device, const void* from,
                                      uint64_t bytes) {
  const ScopedContext scope(*context_);
  if (!scope.status().ok()) return scope.status();
  if (absl::Status status =
          GMB_CUDA(driver(), cuMemcpyHtoD_v2,
                   reinterpret_cast<CUdeviceptr>(to_device), from, bytes);
      !status.ok()) {
    return status;
  }
  // From pageable memory the call returns while the last piece is under way.
  return GMB_CUDA(driver(), cuStreamSynchronize, nullptr);
}

absl::Status CudaMapper::Fill(void* device, uint8_t value, uint64_t bytes) {
  const ScopedContext scope(*context_);
  if (!scope.status().ok()) return scope.status();
  if (absl::Status status =
          GMB_CUDA(driver(), cuMemsetD8_v2,
                   reinterpret_cast<CUdeviceptr>(device), value, bytes);
      !status.ok()) {
    return status;
  }
  return GMB_CUDA(driver(), cuStreamSynchronize, nullptr);
}

}  // namespace gmb::device
