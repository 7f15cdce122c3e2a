// `gmb run`: allocations that another process is to map.
#include <algorithm>
#include <optional>

#include "client/preload/ipc_handle.h"
#include "client/preload/memory.h"
#include "client/preload/program_gate.h"

namespace gmb::preload {

using base::MutexLock;

CUresult SharingResult(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return CUDA_SUCCESS;
    case Outcome::kNoMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Outcome::kNoBroker:
    case Outcome::kTurnedAway:
      return CUDA_ERROR_SYSTEM_NOT_READY;
    case Outcome::kNotOffered:
      break;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

LeaseRange* Memory::LeaseOf(const Block& block) {
  if (live_.Find(block.start) == nullptr) return nullptr;
  LeaseRange* const own = live_.OwnLease(block.start);
  return own != nullptr ? own : small_[block.device].LeaseOf(block.start);
}

// The gate is held across the question: the lease has to be there, and the
// broker answers at once, whoever else waits for what.
Answer Memory::Share(CUdeviceptr address, SharedBlock* shared) {
  Block block;
  {
    const MutexLock lock(&mu_);
    const Block* const found = live_.Find(address);
    if (found == nullptr) {
      if (live_.InRange(address)) return CUDA_ERROR_INVALID_VALUE;
      return std::nullopt;
    }
    // The driver has no such handles for memory of pools.
    if (found->pool != kNoPool) return CUDA_ERROR_INVALID_VALUE;
    block = *found;
  }
  if (driver_.cuDeviceGetUuid_v2(&shared->device, block.device) != CUDA_SUCCESS)
    return CUDA_ERROR_NOT_SUPPORTED;
  const MutexLock sharing(&sharing_);
  const GatedCall call;
  if (!call.in()) return static_cast<CUresult>(MemoryIsAway());
  LeaseRange lease;
  {
    const MutexLock lock(&mu_);
    const LeaseRange* const found = LeaseOf(block);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    lease = *found;
  }
  // First, so that nobody gets it anew meanwhile.
  MarkShared(block, true);
  const CUresult result =
      SharingResult(broker_.Export(lease, &shared->lease, nullptr));
  if (result != CUDA_SUCCESS) {
    if (!lease.shared) MarkShared(block, false);
    return result;
  }
  shared->offset = block.start - lease.start;
  shared->bytes = block.bytes;
  const MutexLock lock(&mu_);
  const LeaseRange* const still = LeaseOf(block);
  if (still != nullptr && still->handle == lease.handle)
    exported_[lease.handle] = shared->lease;
  return CUDA_SUCCESS;
}

bool Memory::HasExported(const internal::ExportedLease& exported) {
  const MutexLock lock(&mu_);
  return std::any_of(exported_.begin(), exported_.end(), [&](const auto& one) {
    return one.second.lease_id == exported.lease_id &&
           one.second.key == exported.key;
  });
}

void Memory::MarkShared(const Block& block, bool shared) {
  const MutexLock lock(&mu_);
  LeaseRange* const lease = LeaseOf(block);
  if (lease == nullptr || lease->shared == shared) return;
  lease->shared = shared;
  ProgramGate::Share(shared ? 1 : -1);
}

bool Memory::GivesHandles(CUdeviceptr address) {
  const MutexLock lock(&mu_);
  const Block* const block = live_.Find(address);
  return block != nullptr && block->pool == kNoPool;
}

}  // namespace gmb::preload
