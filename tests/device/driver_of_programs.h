#ifndef GMB_TESTS_DEVICE_DRIVER_OF_PROGRAMS_H_
#define GMB_TESTS_DEVICE_DRIVER_OF_PROGRAMS_H_

#include <cstddef>

#include "device/cuda/abi/driver_api.h"

// The parts of the driver that programs use and gmb itself has no use for, for
// programs of tests and the drivers that tests have made: modules, launches,
// graphs, and the plain names, which are the newest version's in CUDA's own
// header. tests/device/cuda_abi holds the declarations against that header,
// too.

// The driver's names, and its functions' parameters by what they are: who defines
// one may say more.
// NOLINTBEGIN(readability-identifier-naming)
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUdevResourceDesc = struct CUdevResourceDesc_st*;
struct CUctxCreateParams_st;
using CUhostFn = void (*)(void* argument);

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image);
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module,
                             const char* name);
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x,
                        unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void** arguments, void** extra);
CUresult cuStreamQuery(CUstream stream);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument);

CUresult cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph,
                                     unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream);
CUresult cuGraphExecDestroy(CUgraphExec graph);
CUresult cuGraphDestroy(CUgraph graph);

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes,
                           unsigned int flags);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream stream);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                         CUstream stream);

// Out of use.
CUresult cuCtxAttach(CUcontext* context, unsigned int flags);
CUresult cuCtxDetach(CUcontext context);
// Since CUDA 13.
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams_st* parameters,
                        unsigned int flags, CUdevice device);
// Since CUDA 12.4.
CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc resources,
                          CUdevice device, unsigned int flags);

}  // extern "C"

#define cuCtxCreate cuCtxCreate_v4
#define cuCtxDestroy cuCtxDestroy_v2
#define cuCtxPopCurrent cuCtxPopCurrent_v2
#define cuCtxPushCurrent cuCtxPushCurrent_v2
#define cuDeviceGetUuid cuDeviceGetUuid_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2
#define cuDeviceTotalMem cuDeviceTotalMem_v2
#define cuEventDestroy cuEventDestroy_v2
#define cuGetProcAddress cuGetProcAddress_v2
#define cuIpcOpenMemHandle cuIpcOpenMemHandle_v2
#define cuMemAlloc cuMemAlloc_v2
#define cuMemAllocPitch cuMemAllocPitch_v2
#define cuMemFree cuMemFree_v2
#define cuMemGetAddressRange cuMemGetAddressRange_v2
#define cuMemGetInfo cuMemGetInfo_v2
#define cuMemHostRegister cuMemHostRegister_v2
#define cuMemcpyDtoDAsync cuMemcpyDtoDAsync_v2
#define cuMemcpyDtoH cuMemcpyDtoH_v2
#define cuMemcpyDtoHAsync cuMemcpyDtoHAsync_v2
#define cuMemcpyHtoD cuMemcpyHtoD_v2
#define cuMemcpyHtoDAsync cuMemcpyHtoDAsync_v2
#define cuMemsetD8 cuMemsetD8_v2
#define cuStreamBeginCapture cuStreamBeginCapture_v2
#define cuStreamDestroy cuStreamDestroy_v2
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
// NOLINTEND(readability-identifier-naming)

#endif  // GMB_TESTS_DEVICE_DRIVER_OF_PROGRAMS_H_
