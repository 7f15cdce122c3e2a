#ifndef GMB_DEVICE_CUDA_CUDA_DEVICE_H_
#define GMB_DEVICE_CUDA_CUDA_DEVICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device/cuda/abi/driver_api.h"
#include "device/cuda/cuda_driver.h"
#include "device/handle.h"

namespace gmb::device {

// Granularity of ipc slabs: the driver puts allocations of whole 2 MiB pages
// into pages of their own, so that a handle exposes no neighbour.
inline constexpr uint64_t kIpcGranularityBytes = uint64_t{2} << 20;

// One GPU as this process sees it. The ordinal differs between processes
// (CUDA_VISIBLE_DEVICES); the UUID does not.
struct CudaDevice {
  CUdevice device = 0;
  std::string uuid;  // "GPU-8f5c3a1e-...", as nvidia-smi prints it
  std::string name;
  uint64_t total_bytes = 0;
};

[[nodiscard]] absl::StatusOr<std::vector<CudaDevice>> ListCudaDevices(
    const CudaDriver& driver);

// `name` is a UUID or "cuda:<ordinal>". NOT_FOUND, with what there is, when no
// visible GPU has that name.
[[nodiscard]] absl::StatusOr<CudaDevice> FindCudaDevice(
    const CudaDriver& driver, absl::string_view name);

// FAILED_PRECONDITION unless the GPU has virtual memory management with file
// descriptors as handles, which vmm devices need.
[[nodiscard]] absl::Status CheckVmmSupport(const CudaDriver& driver,
                                           const CudaDevice& device);

// How slabs of a vmm device are created.
[[nodiscard]] absl::StatusOr<CUmemAllocationProp> VmmProperties(
    const CudaDriver& driver, const CudaDevice& device);

// The device as brokers and clients speak of it.
[[nodiscard]] absl::StatusOr<DeviceInfo> DescribeCudaDevice(
    const CudaDriver& driver, const CudaDevice& device, DeviceKind kind);

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_CUDA_DEVICE_H_
