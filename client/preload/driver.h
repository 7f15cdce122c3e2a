#ifndef GMB_CLIENT_PRELOAD_DRIVER_H_
#define GMB_CLIENT_PRELOAD_DRIVER_H_

#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// The driver's own functions that are used here, by the names under which
// libcuda.so.1 exports them. Per-thread variants are the plain ones on the
// stream CU_STREAM_PER_THREAD.
#define GMB_REAL_FUNCTIONS(F)               \
  F(cuGetProcAddress_v2)                    \
  F(cuMemAlloc_v2)                          \
  F(cuMemAllocPitch_v2)                     \
  F(cuMemFree_v2)                           \
  F(cuMemGetInfo_v2)                        \
  F(cuMemGetAddressRange_v2)                \
  F(cuMemCreate)                            \
  F(cuMemRelease)                           \
  F(cuMemRetainAllocationHandle)            \
  F(cuMemGetAllocationPropertiesFromHandle) \
  F(cuMemExportToShareableHandle)           \
  F(cuMemImportFromShareableHandle)         \
  F(cuMemMap)                               \
  F(cuMemUnmap)                             \
  F(cuMemSetAccess)                         \
  F(cuMemGetAccess)                         \
  F(cuMemAddressReserve)                    \
  F(cuMemAddressFree)                       \
  F(cuIpcGetMemHandle)                      \
  F(cuIpcOpenMemHandle_v2)                  \
  F(cuIpcCloseMemHandle)                    \
  F(cuDeviceGetAttribute)                   \
  F(cuMemAllocAsync)                        \
  F(cuMemAllocFromPoolAsync)                \
  F(cuMemFreeAsync)                         \
  F(cuMemPoolCreate)                        \
  F(cuMemPoolDestroy)                       \
  F(cuMemPoolTrimTo)                        \
  F(cuMemPoolGetAttribute)                  \
  F(cuMemPoolSetAttribute)                  \
  F(cuDeviceGetDefaultMemPool)              \
  F(cuDeviceGetMemPool)                     \
  F(cuStreamBeginCapture_v2)                \
  F(cuStreamBeginCaptureToGraph)            \
  F(cuStreamEndCapture)                     \
  F(cuStreamIsCapturing)                    \
  F(cuStreamDestroy_v2)                     \
  F(cuStreamGetCtx)                         \
  F(cuStreamSynchronize)                    \
  F(cuStreamWaitEvent)                      \
  F(cuEventCreate)                          \
  F(cuEventRecord)                          \
  F(cuEventQuery)                           \
  F(cuEventSynchronize)                     \
  F(cuEventDestroy_v2)                      \
  F(cuCtxGetCurrent)                        \
  F(cuCtxGetDevice)                         \
  F(cuCtxSynchronize)                       \
  F(cuCtxDestroy_v2)                        \
  F(cuCtxPushCurrent_v2)                    \
  F(cuCtxPopCurrent_v2)                     \
  F(cuDriverGetVersion)                     \
  F(cuDeviceGet)                            \
  F(cuDeviceGetCount)                       \
  F(cuDeviceGetUuid_v2)                     \
  F(cuDeviceCanAccessPeer)                  \
  F(cuDevicePrimaryCtxGetState)             \
  F(cuDevicePrimaryCtxRetain)               \
  F(cuDevicePrimaryCtxRelease_v2)           \
  F(cuDevicePrimaryCtxReset_v2)

// Calls one of them that may be missing in an older driver.
#define GMB_REAL_CALL(driver, name, ...)               \
  ((driver).name == nullptr ? CUDA_ERROR_NOT_SUPPORTED \
                            : (driver).name(__VA_ARGS__))

struct Driver {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declared name takes none
#define GMB_REAL_MEMBER(name) decltype(&::name) name = nullptr;
  GMB_REAL_FUNCTIONS(GMB_REAL_MEMBER)
#undef GMB_REAL_MEMBER

  // CUDA 11.3's form of cuGetProcAddress_v2, without the last argument.
  CUresult (*cuGetProcAddress_v1)(const char*, void**, int,
                                  cuuint64_t) = nullptr;
  // CUDA 12.5's, which older headers do not declare.
  CUresult (*cuCtxRecordEvent)(CUcontext, CUevent) = nullptr;
  // CUDA 13.0's, likewise.
  CUresult (*cuCtxSynchronize_v2)(CUcontext) = nullptr;
  // CUDA 12.4's, likewise. A CUgreenCtx is a pointer.
  CUresult (*cuGreenCtxDestroy)(void*) = nullptr;
  CUresult (*cuCtxFromGreenCtx)(CUcontext*, void*) = nullptr;
  // CUDA 7's, some of which the CUDA runtime asks for still.
  CUresult (*cuDevicePrimaryCtxReset_v1)(CUdevice) = nullptr;
  CUresult (*cuDevicePrimaryCtxRelease_v1)(CUdevice) = nullptr;
  CUresult (*cuCtxDestroy_v1)(CUcontext) = nullptr;
  CUresult (*cuCtxAttach)(CUcontext*, unsigned) = nullptr;
  CUresult (*cuCtxDetach)(CUcontext) = nullptr;
  CUresult (*cuStreamDestroy_v1)(CUstream) = nullptr;
  CUresult (*cuStreamBeginCapture_v1)(CUstream) = nullptr;

  // Loaded when first asked for, never unloaded. Null when this machine has
  // none. A function that it lacks is null.
  [[nodiscard]] static const Driver* Get();

  // Whether the device's primary context lives.
  [[nodiscard]] bool HasPrimaryContext(CUdevice device) const;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_DRIVER_H_
