// `gmb run`: memory that the program maps itself leaves the device and comes
// back, at each of its addresses and with the same access.
#include <optional>

#include "client/preload/find_symbol.h"
#include "client/preload/primary_scope.h"
#include "client/preload/say.h"
#include "client/preload/serve.h"
#include "client/preload/virtual_memory.h"

namespace gmb::preload {

using base::MutexLock;

internal::RangeHooks VirtualMemory::HooksOf(
    CUmemGenericAllocationHandle handle) {
  internal::RangeHooks hooks{};
  hooks.handle = handle;
  hooks.map = [](uint64_t name, const int* fds, const uint64_t* slab_bytes,
                 size_t count) {
    const Driver& driver = *Driver::Get();
    return static_cast<int>(
        TheVirtualMemory(driver).Arrive(name, fds, slab_bytes, count));
  };
  hooks.unmap = [](uint64_t name) {
    const Driver& driver = *Driver::Get();
    return static_cast<int>(TheVirtualMemory(driver).Leave(name));
  };
  return hooks;
}

CUresult VirtualMemory::Import(const int* fds, const uint64_t* slab_bytes,
                               size_t count, std::vector<Slab>* slabs) {
  slabs->reserve(count);
  for (size_t i = 0; i < count; ++i) {
    CUmemGenericAllocationHandle imported = 0;
    const CUresult result =
        GMB_REAL_CALL(driver_, cuMemImportFromShareableHandle, &imported,
                      reinterpret_cast<void*>(static_cast<intptr_t>(fds[i])),
                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result != CUDA_SUCCESS) {
      LetGo(*slabs);
      return result;
    }
    slabs->push_back({.imported = imported, .bytes = slab_bytes[i]});
  }
  return CUDA_SUCCESS;
}

void VirtualMemory::LetGo(const std::vector<Slab>& slabs) {
  for (const Slab& slab : slabs)
    GMB_REAL_CALL(driver_, cuMemRelease, slab.imported);
}

CUresult VirtualMemory::MapSlabs(CUdeviceptr start,
                                 const std::vector<Slab>& slabs) {
  uint64_t mapped = 0;
  for (const Slab& slab : slabs) {
    const CUresult result = GMB_REAL_CALL(driver_, cuMemMap, start + mapped,
                                          slab.bytes, 0, slab.imported, 0);
    if (result != CUDA_SUCCESS) {
      if (mapped > 0) GMB_REAL_CALL(driver_, cuMemUnmap, start, mapped);
      return result;
    }
    mapped += slab.bytes;
  }
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::MapAgain(const VirtualMapping& mapping,
                                 const std::vector<Slab>& slabs) {
  CUresult result = MapSlabs(mapping.start, slabs);
  if (result != CUDA_SUCCESS || mapping.access.empty()) return result;
  result = GMB_REAL_CALL(driver_, cuMemSetAccess, mapping.start, mapping.bytes,
                         mapping.access.data(), mapping.access.size());
  if (result != CUDA_SUCCESS)
    GMB_REAL_CALL(driver_, cuMemUnmap, mapping.start, mapping.bytes);
  return result;
}

CUresult VirtualMemory::Arrive(CUmemGenericAllocationHandle handle,
                               const int* fds, const uint64_t* slab_bytes,
                               size_t count) {
  CUdevice device = 0;
  bool attached = false;
  {
    const MutexLock lock(&mu_);
    const VirtualHandle* const found = book_.Find(handle);
    if (found == nullptr) return CUDA_SUCCESS;  // released meanwhile
    device = found->properties.location.id;
    attached = found->attached;
  }
  // Another process's memory may be on a device on which this process has no
  // context. It needs none: the memory arrives on the thread that opens it.
  std::optional<PrimaryScope> context;
  if (!attached) context.emplace(driver_, device);
  if (!attached && context->result() != CUDA_SUCCESS) return context->result();
  std::vector<Slab> slabs;
  CUresult result = Import(fds, slab_bytes, count, &slabs);
  if (result != CUDA_SUCCESS) return result;
  {
    const MutexLock order(&order_);
    std::vector<VirtualMapping> mappings;
    {
      const MutexLock lock(&mu_);
      mappings = book_.Of(handle);
    }
    size_t done = 0;
    while (done < mappings.size() && result == CUDA_SUCCESS) {
      result = MapAgain(mappings[done], slabs);
      if (result == CUDA_SUCCESS) ++done;
    }
    if (result == CUDA_SUCCESS) {
      const MutexLock lock(&mu_);
      if (VirtualHandle* const found = book_.Find(handle))
        found->slabs.swap(slabs);
    } else {
      for (size_t i = 0; i < done; ++i) {
        GMB_REAL_CALL(driver_, cuMemUnmap, mappings[i].start,
                      mappings[i].bytes);
      }
    }
  }
  LetGo(slabs);  // none, unless it failed or is not wanted any more
  return result;
}

// The devices that may have work with it; the gate is closed, so that no more
// is submitted.
CUresult VirtualMemory::WaitForUsersOf(CUmemGenericAllocationHandle handle) {
  std::set<CUdevice> devices;
  {
    const MutexLock lock(&mu_);
    for (const VirtualMapping& mapping : book_.Of(handle)) {
      for (const CUmemAccessDesc& access : mapping.access) {
        if (access.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
          devices.insert(access.location.id);
      }
    }
  }
  for (const CUdevice device : devices) {
    if (const CUresult result = driver_.Synchronize(device);
        result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Leave(CUmemGenericAllocationHandle handle) {
  CUdevice device = 0;
  {
    const MutexLock lock(&mu_);
    const VirtualHandle* const found = book_.Find(handle);
    if (found == nullptr || found->slabs.empty()) return CUDA_SUCCESS;
    device = found->properties.location.id;
  }
  const PrimaryScope context(driver_, device);
  CUresult result = context.result();
  if (result == CUDA_SUCCESS) result = WaitForUsersOf(handle);
  if (result != CUDA_SUCCESS) return result;
  std::vector<Slab> slabs;
  {
    const MutexLock order(&order_);
    std::vector<VirtualMapping> mappings;
    {
      const MutexLock lock(&mu_);
      VirtualHandle* const found = book_.Find(handle);
      if (found == nullptr) return CUDA_SUCCESS;
      mappings = book_.Of(handle);
      slabs = found->slabs;
    }
    size_t done = 0;
    while (done < mappings.size() && result == CUDA_SUCCESS) {
      result = GMB_REAL_CALL(driver_, cuMemUnmap, mappings[done].start,
                             mappings[done].bytes);
      if (result == CUDA_SUCCESS) ++done;
    }
    if (result != CUDA_SUCCESS) {
      for (size_t i = 0; i < done; ++i) {
        if (MapAgain(mappings[i], slabs) != CUDA_SUCCESS) {
          SayAlways("the driver does not map again what it has unmapped");
        }
      }
      return result;
    }
    const MutexLock lock(&mu_);
    if (VirtualHandle* const found = book_.Find(handle)) found->slabs.clear();
  }
  LetGo(slabs);
  return CUDA_SUCCESS;
}

}  // namespace gmb::preload
