#ifndef GMB_DEVICE_CUDA_ABI_VIRTUAL_MEMORY_H_
#define GMB_DEVICE_CUDA_ABI_VIRTUAL_MEMORY_H_

#include <cstddef>

#include "device/cuda/abi/objects.h"
#include "device/cuda/abi/result.h"

// Memory and addresses apart from each other: handles, and where they are
// mapped.

// The driver's names, and its functions' parameters by what they are: who defines
// one may say more.
// NOLINTBEGIN(readability-identifier-naming)
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
enum CUmemAllocationHandleType_enum : int {
  CU_MEM_HANDLE_TYPE_NONE = 0,
  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
  CU_MEM_HANDLE_TYPE_WIN32 = 2,
  CU_MEM_HANDLE_TYPE_WIN32_KMT = 4,
  CU_MEM_HANDLE_TYPE_FABRIC = 8,
};
using CUmemAllocationHandleType = CUmemAllocationHandleType_enum;

enum CUmemAllocationType_enum : int {
  CU_MEM_ALLOCATION_TYPE_INVALID = 0,
  CU_MEM_ALLOCATION_TYPE_PINNED = 1,
};
using CUmemAllocationType = CUmemAllocationType_enum;

enum CUmemAllocationCompType_enum : int {
  CU_MEM_ALLOCATION_COMP_NONE = 0,
  CU_MEM_ALLOCATION_COMP_GENERIC = 1,
};

enum CUmemLocationType_enum : int {
  CU_MEM_LOCATION_TYPE_INVALID = 0,
  CU_MEM_LOCATION_TYPE_DEVICE = 1,
  CU_MEM_LOCATION_TYPE_HOST = 2,
  CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
  CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
};
using CUmemLocationType = CUmemLocationType_enum;

enum CUmemAccess_flags_enum : int {
  CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
  CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
  CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
};
using CUmemAccess_flags = CUmemAccess_flags_enum;

enum CUmemAllocationGranularity_flags_enum : int {
  CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
  CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
};
using CUmemAllocationGranularity_flags = CUmemAllocationGranularity_flags_enum;

struct CUmemLocation_st {
  CUmemLocationType type;
  int id;  // of a device its number
};
using CUmemLocation = CUmemLocation_st;

// Reserved fields have to be 0.
struct CUmemAllocationProp_st {
  CUmemAllocationType type;
  CUmemAllocationHandleType requestedHandleTypes;
  CUmemLocation location;
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};
using CUmemAllocationProp = CUmemAllocationProp_st;

struct CUmemAccessDesc_st {
  CUmemLocation location;
  CUmemAccess_flags flags;
};
using CUmemAccessDesc = CUmemAccessDesc_st;

extern "C" {

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties,
                     unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                     void* at);
CUresult cuMemExportToShareableHandle(void* shareable,
                                      CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type,
                                      unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                        void* shareable,
                                        CUmemAllocationHandleType type);
CUresult cuMemGetAllocationGranularity(size_t* granularity,
                                       const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option);
CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle);

CUresult cuMemAddressReserve(CUdeviceptr* start, size_t bytes, size_t alignment,
                             CUdeviceptr wish, unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr start, size_t bytes);
CUresult cuMemMap(CUdeviceptr start, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle,
                  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr start, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr start, size_t bytes,
                        const CUmemAccessDesc* access, size_t count);
CUresult cuMemGetAccess(unsigned long long* flags,
                        const CUmemLocation* location, CUdeviceptr address);

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
// NOLINTEND(readability-identifier-naming)

#endif  // GMB_DEVICE_CUDA_ABI_VIRTUAL_MEMORY_H_
