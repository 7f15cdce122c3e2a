#ifndef GMB_DEVICE_CUDA_VMM_ALLOCATOR_H_
#define GMB_DEVICE_CUDA_VMM_ALLOCATOR_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device/allocator.h"
#include "device/cuda/abi/driver_api.h"
#include "device/cuda/cuda_allocator.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"

namespace gmb::device {

// The vmm device: a slab is one cuMemCreate, exported once as an fd. Creating
// and exporting need no CUDA context, so this costs no device memory.
class VmmAllocator final : public CudaAllocator {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Allocator>> Open(
      absl::string_view name);

  VmmAllocator(const VmmAllocator&) = delete;
  VmmAllocator& operator=(const VmmAllocator&) = delete;
  ~VmmAllocator() override;

  [[nodiscard]] absl::StatusOr<CreatedSlab> Create(uint64_t bytes) override;
  // FreeBytes has been counting it: the driver does, whoever keeps it.
  [[nodiscard]] absl::StatusOr<SlabKey> Import(const ShareableHandle& handle,
                                               uint64_t bytes) override;
  [[nodiscard]] absl::Status Destroy(SlabKey key) override;

 private:
  VmmAllocator(const CudaDriver* driver, const CudaDevice& device,
               DeviceInfo info, const CUmemAllocationProp& properties)
      : CudaAllocator(driver, device, std::move(info)),
        properties_(properties) {}

  // Whether the driver says that an imported slab is one that Create makes.
  absl::Status CheckImported(CUmemGenericAllocationHandle handle) const;

  const CUmemAllocationProp properties_;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_VMM_ALLOCATOR_H_
