#ifndef GMB_DEVICE_CUDA_VMM_ALLOCATOR_H_
#define GMB_DEVICE_CUDA_VMM_ALLOCATOR_H_

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device/allocator.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"
#include "device/cuda/free_memory.h"
#include "device/cuda/nvml.h"

namespace gmb::device {

// The vmm device: a slab is one cuMemCreate, exported once as an fd. Creating
// and exporting need no CUDA context, so this costs no device memory.
class VmmAllocator final : public Allocator {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Allocator>> Open(
      absl::string_view name);

  VmmAllocator(const VmmAllocator&) = delete;
  VmmAllocator& operator=(const VmmAllocator&) = delete;
  ~VmmAllocator() override;

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] absl::StatusOr<CreatedSlab> Create(uint64_t bytes) override;
  [[nodiscard]] absl::Status Destroy(SlabKey key) override;
  [[nodiscard]] absl::StatusOr<uint64_t> FreeBytes() override {
    return free_memory_.Bytes();
  }
  [[nodiscard]] absl::StatusOr<std::vector<ProcessUsage>> Processes() override {
    return nvml::Processes(info_.uuid);
  }

 private:
  VmmAllocator(const CudaDriver* driver, const CudaDevice& device,
               DeviceInfo info, const CUmemAllocationProp& properties)
      : driver_(*driver),
        info_(std::move(info)),
        properties_(properties),
        free_memory_(driver, device) {}

  const CudaDriver& driver_;
  const DeviceInfo info_;
  const CUmemAllocationProp properties_;
  FreeMemory free_memory_;
  SlabKey next_key_ = 1;
  absl::flat_hash_map<SlabKey, CUmemGenericAllocationHandle> slabs_;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_VMM_ALLOCATOR_H_
