#ifndef GMB_DEVICE_CUDA_ABI_CONTEXTS_H_
#define GMB_DEVICE_CUDA_ABI_CONTEXTS_H_

#include "device/cuda/abi/objects.h"
#include "device/cuda/abi/result.h"

// Contexts: a device's primary one, the current one, and how others end.

// The driver's names, and its functions' parameters by what they are: who defines
// one may say more.
// NOLINTBEGIN(readability-identifier-naming)
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" {

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags,
                                    int* active);

CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxGetDevice(CUdevice* device);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext* context);
CUresult cuCtxSynchronize();
CUresult cuCtxDestroy_v2(CUcontext context);

// Since CUDA 12.4.
CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green);
CUresult cuGreenCtxDestroy(CUgreenCtx context);

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
// NOLINTEND(readability-identifier-naming)

#endif  // GMB_DEVICE_CUDA_ABI_CONTEXTS_H_
