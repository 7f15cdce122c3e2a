// Grant: what both kinds of GPU slabs share.
#include "device/cuda/cuda_allocator.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "device/sizes.h"

namespace gmb::device {

absl::Status CudaAllocator::CheckSlab(uint64_t bytes) const {
  GMB_RETURN_IF_ERROR(CheckSize(bytes, info_.granularity_bytes));
  if (bytes <= info_.total_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("slab is larger than the device: requested=", bytes,
                   " device=", info_.total_bytes));
}

SlabKey CudaAllocator::Add(DriverSlab slab) {
  const SlabKey key = next_key_++;
  slabs_.emplace(key, slab);
  return key;
}

absl::StatusOr<CudaAllocator::DriverSlab> CudaAllocator::Remove(SlabKey key) {
  const auto found = slabs_.find(key);
  if (found == slabs_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no such slab on ", info_.uuid, ": key=", key));
  }
  const DriverSlab slab = found->second;
  slabs_.erase(found);
  return slab;
}

}  // namespace gmb::device
