// `gmb run`: handles of cuMemCreate that another process gets as a file
// descriptor, and handles for memory of other processes.
#include <optional>

#include "client/preload/program_gate.h"
#include "client/preload/virtual_hooks.h"
#include "client/preload/virtual_memory.h"

namespace gmb::preload {

using base::MutexLock;

bool VirtualMemory::MarkShared(CUmemGenericAllocationHandle handle,
                               bool shared) {
  const MutexLock lock(&mu_);
  VirtualHandle* const found = book_.FindReferenced(handle);
  if (found == nullptr || !found->lease.has_value()) return false;
  if (found->lease->shared != shared) {
    found->lease->shared = shared;
    ProgramGate::Share(shared ? 1 : -1);
  }
  return true;
}

// The gate is held across the question, as in LeaseExports::Share.
Answer VirtualMemory::Export(void* shareable,
                             CUmemGenericAllocationHandle handle,
                             CUmemAllocationHandleType type) {
  if (!VirtualHandles::IsOurs(handle)) return std::nullopt;
  const MutexLock sharing(&sharing_);
  const GatedCall call;
  if (!call.in()) return static_cast<CUresult>(MemoryIsAway());
  LeaseRange lease;
  SharedBlock block{};
  CUdevice device = 0;
  bool whole = false;
  {
    const MutexLock lock(&mu_);
    const VirtualHandle* const found = book_.FindReferenced(handle);
    if (shareable == nullptr || found == nullptr || found->attached ||
        !found->lease.has_value() ||
        (found->properties.requestedHandleTypes & type) == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    lease = *found->lease;
    whole = found->slabs.size() == 1;
    block.bytes = found->bytes;
    device = found->properties.location.id;
  }
  if (driver_.cuDeviceGetUuid_v2(&block.device, device) != CUDA_SUCCESS)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (!MarkShared(handle, true)) return CUDA_ERROR_INVALID_VALUE;
  int fd = -1;
  const CUresult result =
      whole ? SharingResult(memory_.broker().Export(lease, &block.lease, &fd))
            : ShareSlabs(lease, handle, &block, &fd);
  if (result == CUDA_SUCCESS) {
    *static_cast<int*>(shareable) = fd;
  } else if (!lease.shared && block.lease.lease_id == 0) {
    MarkShared(handle, false);  // the broker has not let others in
  }
  return result;
}

// No file descriptor is several slabs: it names them, and only who knows the name
// can map them.
CUresult VirtualMemory::ShareSlabs(const LeaseRange& lease,
                                   CUmemGenericAllocationHandle handle,
                                   SharedBlock* block, int* fd) {
  const CUresult result =
      SharingResult(memory_.broker().Export(lease, &block->lease, nullptr));
  if (result != CUDA_SUCCESS) return result;
  *fd = DescriptorOf(*block);
  if (*fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  const MutexLock lock(&mu_);
  book_.NoteLease(handle, NameOf(block->lease));
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Open(const internal::ExportedLease& exported,
                             CUdevice device,
                             CUmemGenericAllocationHandle* handle) {
  const MutexLock sharing(&sharing_);
  const LeaseName lease = NameOf(exported);
  {
    const MutexLock lock(&mu_);
    if (const auto known = book_.OfLease(lease)) {
      ++book_.Find(*known)->references;
      *handle = *known;
      return CUDA_SUCCESS;
    }
  }
  uint64_t bytes = 0;
  const CUresult result = Attach(exported, device, handle, &bytes);
  if (result != CUDA_SUCCESS) return result;
  const MutexLock lock(&mu_);
  book_.Find(*handle)->imported = true;
  book_.NoteLease(*handle, lease);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Attach(const internal::ExportedLease& exported,
                               CUdevice device,
                               CUmemGenericAllocationHandle* handle,
                               uint64_t* bytes) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  CUmemGenericAllocationHandle name = 0;
  {
    const MutexLock lock(&mu_);
    name = book_.Add(0, properties);
    book_.Find(name)->attached = true;
  }
  LeaseRange lease;
  const Outcome outcome = memory_.broker().AttachExported(
      memory_.names().UuidOf(device), exported, HooksOf(name), &lease);
  const MutexLock lock(&mu_);
  if (outcome != Outcome::kDone) {
    book_.Drop(name);
    return outcome == Outcome::kNotOffered ? CUDA_ERROR_INVALID_HANDLE
                                           : SharingResult(outcome);
  }
  lease.name = name;
  VirtualHandle& found = *book_.Find(name);
  found.lease = lease;
  found.bytes = lease.bytes;
  *handle = name;
  *bytes = lease.bytes;
  return CUDA_SUCCESS;
}

}  // namespace gmb::preload
