// `gmb run`: handles of cuMemCreate that another process gets as a file
// descriptor, and handles for memory of other processes.
#include <optional>

#include "client/preload/program_gate.h"
#include "client/preload/say.h"
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

// The gate is held across the question, as in Memory::Share.
Answer VirtualMemory::Export(void* shareable,
                             CUmemGenericAllocationHandle handle,
                             CUmemAllocationHandleType type) {
  if (!VirtualHandles::IsOurs(handle)) return std::nullopt;
  const MutexLock sharing(&sharing_);
  const GatedCall call;
  if (!call.in()) return static_cast<CUresult>(MemoryIsAway());
  LeaseRange lease;
  size_t slabs = 0;
  {
    const MutexLock lock(&mu_);
    const VirtualHandle* const found = book_.FindReferenced(handle);
    if (shareable == nullptr || found == nullptr || found->attached ||
        !found->lease.has_value() ||
        (found->properties.requestedHandleTypes & type) == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    lease = *found->lease;
    slabs = found->slabs.size();
  }
  if (slabs != 1) {
    SayAlways(
        "the program shares a handle of GPU memory with another process "
        "(cuMemExportToShareableHandle) that is leased in several pieces, "
        "which cannot be; make smaller handles, or use gmb run --vmm native");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (!MarkShared(handle, true)) return CUDA_ERROR_INVALID_VALUE;
  internal::ExportedLease exported{};
  int fd = -1;
  const CUresult result =
      SharingResult(memory_.broker().Export(lease, &exported, &fd));
  if (result == CUDA_SUCCESS) {
    *static_cast<int*>(shareable) = fd;
  } else if (!lease.shared) {
    MarkShared(handle, false);
  }
  return result;
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
      memory_.UuidOf(device), exported, HooksOf(name), &lease);
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
