#ifndef GMB_DEVICE_CUDA_VMM_COPY_ENGINE_H_
#define GMB_DEVICE_CUDA_VMM_COPY_ENGINE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/copy_engine.h"
#include "device/cuda/abi/driver_api.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"

namespace gmb::device {

// Copies of a vmm device: each slab is imported and mapped into a range of its
// own; copies go to streams in turn, so that one is ready to run when another
// ends. The context and the streams are made by the first Map (250 ms, half a
// GiB of the device) and kept. Waiting sleeps, it does not spin.
class VmmCopyEngine final : public CopyEngine {
 public:
  VmmCopyEngine(const CudaDriver* driver, CUdevice device, unsigned streams)
      : driver_(*driver), device_(device), num_streams_(streams) {}
  VmmCopyEngine(const VmmCopyEngine&) = delete;
  VmmCopyEngine& operator=(const VmmCopyEngine&) = delete;
  ~VmmCopyEngine() override;

  [[nodiscard]] absl::StatusOr<void*> Map(const ShareableHandle& slab,
                                          uint64_t bytes) override;
  [[nodiscard]] absl::Status Unmap(void* slab, uint64_t bytes) override;
  [[nodiscard]] absl::Status Begin(CopyDirection direction, void* slab,
                                   void* host, uint64_t bytes) override;
  [[nodiscard]] absl::Status FinishOldest() override;

 private:
  struct Flight {
    CUstream stream;
    CUevent event;  // recorded behind the copy
  };

  absl::Status MakeReady();
  // Imports and maps a slab at `start`, all or nothing.
  absl::Status MapAt(CUdeviceptr start, const ShareableHandle& slab,
                     uint64_t bytes);
  absl::StatusOr<CUevent> TakeEvent();

  const CudaDriver& driver_;
  const CUdevice device_;
  const unsigned num_streams_;
  std::shared_ptr<const CudaContext> context_;  // null until the first Map
  std::vector<CUstream> streams_;
  size_t next_stream_ = 0;
  std::deque<Flight> flights_;  // in the order of Begin
  std::vector<CUevent> idle_events_;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_VMM_COPY_ENGINE_H_
