#ifndef GMB_TESTS_PRELOAD_PROGRAM_API_H_
#define GMB_TESTS_PRELOAD_PROGRAM_API_H_

#include <string>

#include "tests/device/driver_of_programs.h"

// The driver's functions that the program of program_main.cc calls.

#define PROGRAM_FUNCTIONS(F)                \
  F(cuInit)                                 \
  F(cuDevicePrimaryCtxRetain)               \
  F(cuDevicePrimaryCtxReset)                \
  F(cuDevicePrimaryCtxRelease)              \
  F(cuDevicePrimaryCtxGetState)             \
  F(cuCtxCreate)                            \
  F(cuCtxDestroy)                           \
  F(cuCtxAttach)                            \
  F(cuCtxDetach)                            \
  F(cuCtxPushCurrent)                       \
  F(cuCtxPopCurrent)                        \
  F(cuStreamCreate)                         \
  F(cuStreamSynchronize)                    \
  F(cuCtxSynchronize)                       \
  F(cuEventCreate)                          \
  F(cuEventRecord)                          \
  F(cuEventSynchronize)                     \
  F(cuEventDestroy)                         \
  F(cuStreamQuery)                          \
  F(cuStreamBeginCapture)                   \
  F(cuStreamEndCapture)                     \
  F(cuMemcpyHtoD)                           \
  F(cuMemcpyDtoH)                           \
  F(cuMemcpyHtoDAsync)                      \
  F(cuMemcpyDtoDAsync)                      \
  F(cuMemsetD8)                             \
  F(cuMemAlloc)                             \
  F(cuMemAllocPitch)                        \
  F(cuMemAllocManaged)                      \
  F(cuMemAllocAsync)                        \
  F(cuMemAllocFromPoolAsync)                \
  F(cuDeviceGetDefaultMemPool)              \
  F(cuDeviceSetMemPool)                     \
  F(cuMemPoolCreate)                        \
  F(cuMemPoolDestroy)                       \
  F(cuMemPoolGetAttribute)                  \
  F(cuMemPoolSetAttribute)                  \
  F(cuMemPoolTrimTo)                        \
  F(cuMemFree)                              \
  F(cuMemFreeAsync)                         \
  F(cuMemGetInfo)                           \
  F(cuMemHostRegister)                      \
  F(cuMemHostUnregister)                    \
  F(cuMemCreate)                            \
  F(cuMemRelease)                           \
  F(cuMemRetainAllocationHandle)            \
  F(cuMemGetAllocationPropertiesFromHandle) \
  F(cuMemExportToShareableHandle)           \
  F(cuMemImportFromShareableHandle)         \
  F(cuIpcGetMemHandle)                      \
  F(cuIpcOpenMemHandle)                     \
  F(cuIpcCloseMemHandle)                    \
  F(cuMemAddressReserve)                    \
  F(cuMemAddressFree)                       \
  F(cuMemMap)                               \
  F(cuMemUnmap)                             \
  F(cuMemSetAccess)                         \
  F(cuMemGetAccess)                         \
  F(cuDeviceGetAttribute)                   \
  F(cuMemGetAddressRange)                   \
  F(cuPointerGetAttribute)                  \
  F(cuPointerGetAttributes)                 \
  F(cuGreenCtxCreate)                       \
  F(cuCtxFromGreenCtx)                      \
  F(cuGreenCtxDestroy)

struct Api {
#define PROGRAM_MEMBER(name) decltype(&::name) name##_;
  PROGRAM_FUNCTIONS(PROGRAM_MEMBER)
#undef PROGRAM_MEMBER
};

// How it finds them: linked, dlsym, proc (through cuGetProcAddress as the
// runtime does), thread (the same for each thread's default stream).
Api LoadApi(const std::string& how);

#endif  // GMB_TESTS_PRELOAD_PROGRAM_API_H_
