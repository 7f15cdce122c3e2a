#ifndef GMB_DEVICE_CUDA_FREE_MEMORY_H_
#define GMB_DEVICE_CUDA_FREE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"

namespace gmb::device {

// Reads how much memory of a GPU is free: from NVML, which needs no context;
// where NVML cannot tell, from the driver in a primary context that is then
// kept. For one thread at a time.
class FreeMemory {
 public:
  FreeMemory(const CudaDriver* driver, const CudaDevice& device)
      : driver_(driver), device_(device.device), uuid_(device.uuid) {}

  [[nodiscard]] absl::StatusOr<uint64_t> Bytes();

 private:
  const CudaDriver* const driver_;
  const CUdevice device_;
  const std::string uuid_;
  std::shared_ptr<const CudaContext> context_;  // null while NVML answers
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_FREE_MEMORY_H_
