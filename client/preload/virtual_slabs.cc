// `gmb run`: the driver's side of memory that the program maps itself.
#include "client/preload/virtual_slabs.h"

namespace gmb::preload {

CUresult VirtualSlabs::Import(const int* fds, const uint64_t* slab_bytes,
                              size_t count, std::vector<Slab>* slabs) const {
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

void VirtualSlabs::LetGo(const std::vector<Slab>& slabs) const {
  for (const Slab& slab : slabs)
    GMB_REAL_CALL(driver_, cuMemRelease, slab.imported);
}

CUresult VirtualSlabs::Map(CUdeviceptr start,
                           const std::vector<Slab>& slabs) const {
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

CUresult VirtualSlabs::MapAgain(const VirtualMapping& mapping,
                                const std::vector<Slab>& slabs) const {
  CUresult result = Map(mapping.start, slabs);
  if (result != CUDA_SUCCESS || mapping.access.empty()) return result;
  result = GMB_REAL_CALL(driver_, cuMemSetAccess, mapping.start, mapping.bytes,
                         mapping.access.data(), mapping.access.size());
  if (result != CUDA_SUCCESS)
    GMB_REAL_CALL(driver_, cuMemUnmap, mapping.start, mapping.bytes);
  return result;
}

}  // namespace gmb::preload
