#ifndef GMB_DEVICE_CUDA_ABI_MEMORY_H_
#define GMB_DEVICE_CUDA_ABI_MEMORY_H_

#include <cstddef>

#include "device/cuda/abi/objects.h"
#include "device/cuda/abi/result.h"

// Memory that the driver places: blocks, what an address is of, legacy IPC,
// copies, and host memory that is page-locked.

// The driver's names, and its functions' parameters by what they are: who defines
// one may say more.
// NOLINTBEGIN(readability-identifier-naming)
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
enum CUmemorytype_enum : int {
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE = 2,
  CU_MEMORYTYPE_ARRAY = 3,
  CU_MEMORYTYPE_UNIFIED = 4,
};
using CUmemorytype = CUmemorytype_enum;

enum CUpointer_attribute_enum : int {
  CU_POINTER_ATTRIBUTE_CONTEXT = 1,
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
  CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,
  CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
  CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
  CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
  CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
  CU_POINTER_ATTRIBUTE_MAPPED = 13,
  CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
  CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
  CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
  CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
  CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
  CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
  CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20,
};
using CUpointer_attribute = CUpointer_attribute_enum;

enum CUipcMem_flags_enum : int {
  CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
};

// A number of the driver's, as text that travels between processes.
struct CUipcMemHandle_st {
  char reserved[64];
};
using CUipcMemHandle = CUipcMemHandle_st;

enum : unsigned int {
  CU_MEMHOSTREGISTER_PORTABLE = 1,
};

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes);
CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width,
                            size_t height, unsigned int element);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes);
CUresult cuMemGetAddressRange_v2(CUdeviceptr* start, size_t* bytes,
                                 CUdeviceptr address);
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                               CUdeviceptr address);
CUresult cuPointerGetAttributes(unsigned int count,
                                CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address);

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle,
                               unsigned int flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr address);

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes);
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes,
                              CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes,
                              CUstream stream);
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes);

CUresult cuMemHostRegister_v2(void* start, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void* start);

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
// NOLINTEND(readability-identifier-naming)

#endif  // GMB_DEVICE_CUDA_ABI_MEMORY_H_
