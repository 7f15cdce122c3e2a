#ifndef GMB_DEVICE_CUDA_IPC_ALLOCATOR_H_
#define GMB_DEVICE_CUDA_IPC_ALLOCATOR_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device/allocator.h"
#include "device/cuda/abi/driver_api.h"
#include "device/cuda/cuda_allocator.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_device.h"

namespace gmb::device {

// The ipc device, for clients that cannot use vmm: a slab is one cuMemAlloc
// with a legacy IPC handle. It lives in this process's context, so it dies with
// the broker, and freeing one that a client still has open is undefined by
// CUDA's documentation (measured: the client reads on). See docs/devices.md.
class IpcAllocator final : public CudaAllocator {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Allocator>> Open(
      absl::string_view name);

  IpcAllocator(const IpcAllocator&) = delete;
  IpcAllocator& operator=(const IpcAllocator&) = delete;
  ~IpcAllocator() override;

  [[nodiscard]] absl::StatusOr<CreatedSlab> Create(uint64_t bytes) override;
  [[nodiscard]] absl::StatusOr<SlabKey> Import(const ShareableHandle& handle,
                                               uint64_t bytes) override;
  [[nodiscard]] absl::Status Destroy(SlabKey key) override;

 private:
  IpcAllocator(std::shared_ptr<const CudaContext> context,
               const CudaDevice& device, DeviceInfo info)
      : CudaAllocator(&context->driver(), device, std::move(info)),
        context_(std::move(context)) {}

  // Clears the memory and returns its handle.
  absl::StatusOr<IpcHandle> Prepare(CUdeviceptr memory, uint64_t bytes);

  const std::shared_ptr<const CudaContext> context_;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_IPC_ALLOCATOR_H_
