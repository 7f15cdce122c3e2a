#ifndef GMB_DEVICE_CUDA_CUDA_ALLOCATOR_H_
#define GMB_DEVICE_CUDA_CUDA_ALLOCATOR_H_

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/allocator.h"
#include "device/cuda/abi/driver_api.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"
#include "device/cuda/free_memory.h"
#include "device/cuda/nvml.h"

namespace gmb::device {

// The parts that the allocators of both CUDA kinds share: what the GPU says of
// itself, and which slabs there are.
class CudaAllocator : public Allocator {
 public:
  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] absl::StatusOr<uint64_t> FreeBytes() override {
    return free_memory_.Bytes();
  }
  [[nodiscard]] absl::StatusOr<std::vector<ProcessUsage>> Processes() override {
    return nvml::Processes(info_.uuid);
  }

 protected:
  // The driver's number of a slab: an address (ipc) or a handle (vmm).
  using DriverSlab = CUdeviceptr;
  static_assert(std::is_same_v<DriverSlab, CUmemGenericAllocationHandle>);

  CudaAllocator(const CudaDriver* driver, const CudaDevice& device,
                DeviceInfo info)
      : driver_(*driver),
        info_(std::move(info)),
        free_memory_(driver, device) {}

  [[nodiscard]] const CudaDriver& driver() const { return driver_; }
  // Whether the device could hold a slab of that size.
  [[nodiscard]] absl::Status CheckSlab(uint64_t bytes) const;
  SlabKey Add(DriverSlab slab);
  // NOT_FOUND without such a slab. It is ours no more, whatever the driver then
  // says to its end.
  [[nodiscard]] absl::StatusOr<DriverSlab> Remove(SlabKey key);
  [[nodiscard]] const absl::flat_hash_map<SlabKey, DriverSlab>& slabs() const {
    return slabs_;
  }

 private:
  const CudaDriver& driver_;
  const DeviceInfo info_;
  FreeMemory free_memory_;
  SlabKey next_key_ = 1;
  absl::flat_hash_map<SlabKey, DriverSlab> slabs_;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_CUDA_ALLOCATOR_H_
