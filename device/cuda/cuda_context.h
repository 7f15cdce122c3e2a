#ifndef GMB_DEVICE_CUDA_CUDA_CONTEXT_H_
#define GMB_DEVICE_CUDA_CUDA_CONTEXT_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/abi/driver_api.h"
#include "device/cuda/cuda_driver.h"

namespace gmb::device {

// A GPU's primary context, the one that the CUDA runtime and PyTorch use too,
// retained for this object's life. Made where there was none, it costs about
// 250 ms and half a GiB of device memory. Thread-safe.
class CudaContext {
 public:
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const CudaContext>>
  Retain(const CudaDriver* driver, CUdevice device);

  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  ~CudaContext();

  [[nodiscard]] const CudaDriver& driver() const { return *driver_; }
  [[nodiscard]] CUdevice device() const { return device_; }

 private:
  friend class ScopedContext;
  CudaContext(const CudaDriver* driver, CUdevice device, CUcontext context)
      : driver_(driver), device_(device), context_(context) {}

  const CudaDriver* const driver_;
  const CUdevice device_;
  CUcontext context_;  // never changes
};

// Makes the context current in this thread, and the one that was current
// before it again at the end. Check status() before relying on it.
class ScopedContext {
 public:
  explicit ScopedContext(const CudaContext& context);
  // One that is not ours, and outlives it.
  ScopedContext(const CudaDriver& driver, CUcontext context);
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;
  ~ScopedContext();

  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  const CudaDriver& driver_;
  const absl::Status status_;
};

// Waits until everything submitted to the device by this process is done. A
// device whose primary context nobody uses here has nothing to wait for.
[[nodiscard]] absl::Status SynchronizeDevice(const CudaDriver& driver,
                                             CUdevice device);

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_CUDA_CONTEXT_H_
