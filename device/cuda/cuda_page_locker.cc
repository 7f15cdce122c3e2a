// The host pool: page-locks its memory for GPUs.
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status_macros.h"
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
    GMB_ASSIGN_OR_RETURN(std::shared_ptr<const CudaContext> context, Context());
    const ScopedContext scope(*context);
    GMB_RETURN_IF_ERROR(scope.status());
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
      GMB_ASSIGN_OR_RETURN(context_, CudaContext::Retain(driver_, device_));
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
  GMB_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Get());
  GMB_ASSIGN_OR_RETURN(CudaDevice device, FindCudaDevice(*driver, name));
  return std::make_unique<CudaPageLocker>(driver, device.device);
}

}  // namespace gmb::device
