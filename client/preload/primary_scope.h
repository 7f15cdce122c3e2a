#ifndef GMB_CLIENT_PRELOAD_PRIMARY_SCOPE_H_
#define GMB_CLIENT_PRELOAD_PRIMARY_SCOPE_H_

#include "client/preload/driver.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// Has a device's primary context current in this thread while it lives, as the
// threads of the client library need for the driver's calls.
class PrimaryScope {
 public:
  PrimaryScope(const Driver& driver, CUdevice device)
      : driver_(driver), device_(device) {
    CUcontext primary = nullptr;
    result_ = driver_.cuDevicePrimaryCtxRetain(&primary, device_);
    if (result_ != CUDA_SUCCESS) return;
    result_ = driver_.cuCtxPushCurrent_v2(primary);
    if (result_ != CUDA_SUCCESS) driver_.cuDevicePrimaryCtxRelease_v2(device_);
  }
  ~PrimaryScope() {
    if (result_ != CUDA_SUCCESS) return;
    CUcontext popped = nullptr;
    driver_.cuCtxPopCurrent_v2(&popped);
    driver_.cuDevicePrimaryCtxRelease_v2(device_);
  }
  PrimaryScope(const PrimaryScope&) = delete;
  PrimaryScope& operator=(const PrimaryScope&) = delete;

  [[nodiscard]] CUresult result() const { return result_; }

 private:
  const Driver& driver_;
  const CUdevice device_;
  CUresult result_ = CUDA_SUCCESS;
};

// Waits until what was submitted in the device's primary context is done. One
// that nobody uses here has nothing to wait for.
[[nodiscard]] inline CUresult SynchronizePrimary(const Driver& driver,
                                                 CUdevice device) {
  if (!driver.HasPrimaryContext(device)) return CUDA_SUCCESS;
  const PrimaryScope context(driver, device);
  return context.result() != CUDA_SUCCESS ? context.result()
                                          : driver.cuCtxSynchronize();
}

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_PRIMARY_SCOPE_H_
