#ifndef GMB_DEVICE_CUDA_ABI_DEVICES_H_
#define GMB_DEVICE_CUDA_ABI_DEVICES_H_

#include <cstddef>

#include "device/cuda/abi/objects.h"
#include "device/cuda/abi/result.h"

// The driver itself, its devices, and how its functions are found.

// The driver's names, and its functions' parameters by what they are: who defines
// one may say more.
// NOLINTBEGIN(readability-identifier-naming)
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)

// Those of them that gmb asks for.
enum CUdevice_attribute_enum : int {
  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
  CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
};
using CUdevice_attribute = CUdevice_attribute_enum;

enum CUdriverProcAddress_flags_enum : int {
  CU_GET_PROC_ADDRESS_DEFAULT = 0,
  CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1,
  CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
};

enum CUdriverProcAddressQueryResult_enum : int {
  CU_GET_PROC_ADDRESS_SUCCESS = 0,
  CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
  CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
};
using CUdriverProcAddressQueryResult = CUdriverProcAddressQueryResult_enum;

extern "C" {

CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int* version);
CUresult cuGetErrorName(CUresult result, const char** name);
CUresult cuGetProcAddress_v2(const char* symbol, void** function,
                             int cuda_version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status);

CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGetName(char* name, int bytes, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device);
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                              CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device);
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer);

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
// NOLINTEND(readability-identifier-naming)

#endif  // GMB_DEVICE_CUDA_ABI_DEVICES_H_
