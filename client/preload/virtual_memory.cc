// `gmb run`: memory that the program maps itself, from leases.
#include "client/preload/virtual_memory.h"

#include <algorithm>

#include "client/preload/process_life.h"
#include "client/preload/program_gate.h"

namespace gmb::preload {

using base::MutexLock;

// --- Handles; virtual_create.cc has how they come and go.

Answer VirtualMemory::Retain(CUmemGenericAllocationHandle* handle,
                             CUdeviceptr address) {
  const MutexLock lock(&mu_);
  const VirtualMapping* const mapping = book_.At(address);
  if (mapping == nullptr) return std::nullopt;
  VirtualHandle* const found = book_.Find(mapping->handle);
  // Memory of legacy CUDA IPC has none.
  if (handle == nullptr || (found->attached && !found->imported))
    return CUDA_ERROR_INVALID_VALUE;
  ++found->references;
  *handle = mapping->handle;
  return CUDA_SUCCESS;
}

Answer VirtualMemory::GetProperties(CUmemAllocationProp* properties,
                                    CUmemGenericAllocationHandle handle) {
  if (!VirtualHandles::IsOurs(handle)) return std::nullopt;
  const MutexLock lock(&mu_);
  const VirtualHandle* const found = book_.FindReferenced(handle);
  if (found == nullptr || properties == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  *properties = found->properties;
  return CUDA_SUCCESS;
}

// --- Addresses.

Answer VirtualMemory::Map(CUdeviceptr start, uint64_t bytes, uint64_t offset,
                          CUmemGenericAllocationHandle handle, uint64_t flags) {
  if (!VirtualHandles::IsOurs(handle)) return std::nullopt;
  const GatedCall call;
  if (!call.in()) return static_cast<CUresult>(MemoryIsAway());
  const MutexLock order(&order_);
  std::vector<Slab> slabs;
  {
    const MutexLock lock(&mu_);
    const VirtualHandle* const found = book_.FindReferenced(handle);
    if (found == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0 || bytes > found->bytes) return CUDA_ERROR_INVALID_VALUE;
    // The driver maps a handle as a whole.
    if (offset != 0 || bytes < found->bytes) return CUDA_ERROR_NOT_SUPPORTED;
    if (found->slabs.empty()) return static_cast<CUresult>(MemoryIsAway());
    slabs = found->slabs;
    if (!book_.AddMapping(handle, start)) return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = slabs_.Map(start, slabs);
  if (result != CUDA_SUCCESS) {
    const MutexLock lock(&mu_);
    book_.RemoveMapping(start);
  }
  return result;
}

// Mappings that are away are holes to the driver.
CUresult VirtualMemory::UnmapOneByOne(
    CUdeviceptr start, uint64_t bytes,
    const std::vector<VirtualMapping>& mappings,
    std::vector<uint64_t>* unmapped) {
  CUdeviceptr at = start;
  const auto unmap_foreign = [&](CUdeviceptr end) {
    if (at < end) GMB_REAL_CALL(driver_, cuMemUnmap, at, end - at);
  };
  for (const VirtualMapping& mapping : mappings) {
    unmap_foreign(mapping.start);
    at = mapping.start + mapping.bytes;
    bool away = false;
    {
      const MutexLock lock(&mu_);
      away = book_.Find(mapping.handle)->slabs.empty();
    }
    const CUresult result =
        away ? CUDA_SUCCESS
             : GMB_REAL_CALL(driver_, cuMemUnmap, mapping.start, mapping.bytes);
    if (result != CUDA_SUCCESS) return result;
    unmapped->push_back(mapping.start);
  }
  unmap_foreign(start + bytes);
  return CUDA_SUCCESS;
}

Answer VirtualMemory::Unmap(CUdeviceptr start, uint64_t bytes) {
  struct Unused {
    LeaseRange lease;
    CUdevice device;
  };
  std::vector<Unused> unused;
  CUresult result = CUDA_SUCCESS;
  {
    const MutexLock order(&order_);
    std::vector<VirtualMapping> mappings;
    std::vector<uint64_t> unmapped;
    bool all_there = true;
    {
      const MutexLock lock(&mu_);
      bool whole = true;
      mappings = book_.In(start, bytes, &whole);
      if (mappings.empty()) return std::nullopt;
      if (!whole) return CUDA_ERROR_INVALID_VALUE;
      all_there = std::none_of(
          mappings.begin(), mappings.end(),
          [&](const VirtualMapping& mapping) ABSL_EXCLUSIVE_LOCKS_REQUIRED(
              mu_) { return book_.Find(mapping.handle)->slabs.empty(); });
      unmapped.reserve(mappings.size());
      unused.reserve(mappings.size());
    }
    if (Exiting()) return CUDA_SUCCESS;
    if (all_there) {
      result = GMB_REAL_CALL(driver_, cuMemUnmap, start, bytes);
      if (result != CUDA_SUCCESS) return result;
      for (const VirtualMapping& mapping : mappings)
        unmapped.push_back(mapping.start);
    } else {
      result = UnmapOneByOne(start, bytes, mappings, &unmapped);
    }
    const MutexLock lock(&mu_);
    for (const uint64_t at : unmapped) {
      const auto handle = book_.RemoveMapping(at);
      if (const auto lease = book_.LeaseIfUnused(handle)) {
        unused.push_back({*lease, book_.Find(handle)->properties.location.id});
      }
    }
  }
  for (const Unused& one : unused) Keep(one.lease, one.device);
  return result;
}

Answer VirtualMemory::SetAccess(CUdeviceptr start, uint64_t bytes,
                                const CUmemAccessDesc* access, size_t count) {
  const auto ours = [&](bool* whole) {
    const MutexLock lock(&mu_);
    return !book_.In(start, bytes, whole).empty();
  };
  bool whole = true;
  if (!ours(&whole)) return std::nullopt;
  const GatedCall call;
  if (!call.in()) return static_cast<CUresult>(MemoryIsAway());
  const MutexLock order(&order_);
  if (!ours(&whole)) return std::nullopt;  // another thread has unmapped it
  if (!whole) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result =
      GMB_REAL_CALL(driver_, cuMemSetAccess, start, bytes, access, count);
  if (result == CUDA_SUCCESS) {
    const MutexLock lock(&mu_);
    book_.SetAccess(start, bytes, access, count);
  }
  return result;
}

Answer VirtualMemory::GetAccess(unsigned long long* flags,
                                const CUmemLocation* location,
                                CUdeviceptr address) {
  const MutexLock lock(&mu_);
  const VirtualMapping* const mapping = book_.At(address);
  if (mapping == nullptr) return std::nullopt;
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found =
      std::find_if(mapping->access.begin(), mapping->access.end(),
                   [&](const CUmemAccessDesc& one) {
                     return one.location.type == location->type &&
                            one.location.id == location->id;
                   });
  *flags = found == mapping->access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                                          : found->flags;
  return CUDA_SUCCESS;
}

// Memory that is away would come back to addresses that are another's.
Answer VirtualMemory::FreeAddresses(CUdeviceptr start, uint64_t bytes) {
  const MutexLock lock(&mu_);
  bool whole = true;
  if (book_.In(start, bytes, &whole).empty()) return std::nullopt;
  return Exiting() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool VirtualMemory::GetAddressRange(CUdeviceptr address, CUdeviceptr* start,
                                    size_t* bytes) {
  const MutexLock lock(&mu_);
  const VirtualMapping* const mapping = book_.At(address);
  if (mapping == nullptr) return false;
  if (start != nullptr) *start = mapping->start;
  if (bytes != nullptr) *bytes = mapping->bytes;
  return true;
}

bool VirtualMemory::Contains(CUdeviceptr address) {
  const MutexLock lock(&mu_);
  return book_.At(address) != nullptr;
}

std::optional<PointerKind> VirtualMemory::KindOf(CUdeviceptr address) {
  const MutexLock lock(&mu_);
  const VirtualMapping* const mapping = book_.At(address);
  if (mapping == nullptr) return std::nullopt;
  const VirtualHandle* const handle = book_.Find(mapping->handle);
  if (handle == nullptr) return std::nullopt;
  return PointerKind{
      handle->properties.location.id, AccessKey(mapping->access),
      static_cast<uint64_t>(handle->properties.requestedHandleTypes)};
}

}  // namespace gmb::preload
