// `gmb run`: allocations that another process is to map.
#include "client/preload/lease_exports.h"

#include <algorithm>
#include <optional>

#include "client/preload/ipc_handle.h"
#include "client/preload/program_gate.h"

namespace gmb::preload {

using base::MutexLock;

// The gate is held across the question: the lease has to be there, and the
// broker answers at once, whoever else waits for what.
Answer LeaseExports::Share(CUdeviceptr address, SharedBlock* shared) {
  bool ours = false;
  const std::optional<Block> block = allocations_.Find(address, &ours);
  if (!block.has_value()) {
    if (ours) return CUDA_ERROR_INVALID_VALUE;
    return std::nullopt;
  }
  // The driver has no such handles for memory of pools.
  if (block->pool != kNoPool) return CUDA_ERROR_INVALID_VALUE;
  if (driver_.cuDeviceGetUuid_v2(&shared->device, block->device) !=
      CUDA_SUCCESS) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const MutexLock sharing(&sharing_);
  const GatedCall call;
  if (!call.in()) return static_cast<CUresult>(MemoryIsAway());
  const std::optional<LeaseRange> lease = allocations_.LeaseOf(*block);
  if (!lease.has_value()) return CUDA_ERROR_INVALID_VALUE;
  // First, so that nobody gets it anew meanwhile.
  allocations_.MarkShared(*block, true);
  const CUresult result =
      SharingResult(broker_.Export(*lease, &shared->lease, nullptr));
  if (result != CUDA_SUCCESS) {
    if (!lease->shared) allocations_.MarkShared(*block, false);
    return result;
  }
  shared->offset = block->start - lease->start;
  shared->bytes = block->bytes;
  // A thread that takes the block from the books after this forgets the lease
  // later still.
  const MutexLock lock(&mu_);
  const std::optional<LeaseRange> still = allocations_.LeaseOf(*block);
  if (still.has_value() && still->handle == lease->handle)
    exported_[lease->handle] = shared->lease;
  return CUDA_SUCCESS;
}

bool LeaseExports::Has(const internal::ExportedLease& exported) {
  const MutexLock lock(&mu_);
  return std::any_of(exported_.begin(), exported_.end(), [&](const auto& one) {
    return one.second.lease_id == exported.lease_id &&
           one.second.key == exported.key;
  });
}

void LeaseExports::Forget(const LeaseRange& lease) {
  const MutexLock lock(&mu_);
  exported_.erase(lease.handle);
}

}  // namespace gmb::preload
