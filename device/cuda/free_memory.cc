// After a release: how much of a GPU is free again.
#include "device/cuda/free_memory.h"

#include <cstddef>

#include "base/status_macros.h"
#include "device/cuda/nvml.h"

namespace gmb::device {

absl::StatusOr<uint64_t> FreeMemory::Bytes() {
  if (context_ == nullptr) {
    absl::StatusOr<uint64_t> bytes = nvml::FreeBytes(uuid_);
    // A context uses half a GiB: only for what will not be better next time.
    const bool can_not_tell = absl::IsFailedPrecondition(bytes.status()) ||
                              absl::IsNotFound(bytes.status()) ||
                              absl::IsPermissionDenied(bytes.status());
    if (!can_not_tell) return bytes;
    GMB_ASSIGN_OR_RETURN(context_, CudaContext::Retain(driver_, device_));
  }
  const ScopedContext scope(*context_);
  GMB_RETURN_IF_ERROR(scope.status());
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  GMB_RETURN_IF_ERROR(
      GMB_CUDA(*driver_, cuMemGetInfo_v2, &free_bytes, &total_bytes));
  return free_bytes;
}

}  // namespace gmb::device
