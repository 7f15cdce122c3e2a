// The host pool: page-locks its memory for GPUs.
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"
#include "device/hostpool/page_locker.h"

namespace gmb::device {
namespace {

class CudaPageLocker final : public PageLocker {
 public:
  CudaPageLocker(const CudaDriver* driver, CUdevice device)
      : driver_(driver), device_(device) {}

  [[nodiscard]] absl::Status Lock(void* start, uint64_t bytes) override {
    absl::StatusOr<std::shared_ptr<const CudaContext>> context = Context();
    if (!context.ok()) return context.status();
    const ScopedContext scope(**context);
    if (!scope.status().ok()) return scope.status();
    return GMB_CUDA(*driver_, cuMemHostRegister_v2, start, bytes,
                    CU_MEMHOSTREGISTER_PORTABLE);
  }

  void Unlock(void* start) override {
    absl::StatusOr<std::shared_ptr<const CudaContext>> context = Context();
    if (!context.ok()) return;
    const ScopedContext scope(**context);
    driver_->cuMemHostUnregister(start);
  }

 private:
  absl::StatusOr<std::shared_ptr<const CudaContext>> Context() {
    const base::MutexLock lock(&mu_);
    if (context_ == nullptr) {
      auto context = CudaContext::Retain(driver_, device_);
      if (!context.ok()) return context.status();
      context_ = *std::move(context);
    }
    return context_;
  }

  const CudaDriver* const driver_;
  const CUdevice device_;
  base::Mutex mu_;
  std::shared_ptr<const CudaContext> context_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<PageLocker>> OpenCudaPageLocker(
    absl::string_view name) {
  absl::StatusOr<const CudaDriver*> driver = CudaDriver::Get();
  if (!driver.ok()) return driver.status();
  absl::StatusOr<CudaDevice> device = FindCudaDevice(**driver, name);
  if (!device.ok()) return device.status();
  return std::make_unique<CudaPageLocker>(*driver, device->device);
}

}  // namespace gmb::device
