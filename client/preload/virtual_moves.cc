// `gmb run`: memory that the program maps itself leaves the device and comes
// back, at each of its addresses and with the same access.
#include <optional>
#include <set>
#include <vector>

#include "client/preload/find_symbol.h"
#include "client/preload/primary_scope.h"
#include "client/preload/say.h"
#include "client/preload/serve.h"
#include "client/preload/virtual_memory.h"

namespace gmb::preload {

using base::MutexLock;

namespace {

CUresult Await(const Driver& driver, const std::set<CUdevice>& devices) {
  for (const CUdevice device : devices) {
    if (const CUresult result = SynchronizePrimary(driver, device);
        result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

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
  CUresult result = slabs_.Import(fds, slab_bytes, count, &slabs);
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
      result = slabs_.MapAgain(mappings[done], slabs);
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
  slabs_.LetGo(slabs);  // none, unless it failed or is not wanted any more
  return result;
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
  if (result != CUDA_SUCCESS) return result;
  // The gate is closed, so that they get no more work.
  std::set<CUdevice> users;
  {
    const MutexLock lock(&mu_);
    users = book_.UsersOf(handle);
  }
  result = Await(driver_, users);
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
        if (slabs_.MapAgain(mappings[i], slabs) != CUDA_SUCCESS) {
          SayAlways("the driver does not map again what it has unmapped");
        }
      }
      return result;
    }
    const MutexLock lock(&mu_);
    if (VirtualHandle* const found = book_.Find(handle)) found->slabs.clear();
  }
  slabs_.LetGo(slabs);
  return CUDA_SUCCESS;
}

}  // namespace gmb::preload
