#ifndef GMB_DEVICE_CUDA_CUDA_DRIVER_H_
#define GMB_DEVICE_CUDA_CUDA_DRIVER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::device {

// Every driver function that we use, by the versioned name under which
// libcuda.so.1 exports it; all exist since CUDA 11.4.
#define GMB_CUDA_FUNCTIONS(F)               \
  F(cuInit)                                 \
  F(cuDriverGetVersion)                     \
  F(cuGetErrorName)                         \
  F(cuDeviceGet)                            \
  F(cuDeviceGetCount)                       \
  F(cuDeviceGetName)                        \
  F(cuDeviceGetUuid_v2)                     \
  F(cuDeviceGetAttribute)                   \
  F(cuDeviceTotalMem_v2)                    \
  F(cuDeviceCanAccessPeer)                  \
  F(cuDevicePrimaryCtxRetain)               \
  F(cuDevicePrimaryCtxRelease_v2)           \
  F(cuDevicePrimaryCtxGetState)             \
  F(cuCtxPushCurrent_v2)                    \
  F(cuCtxPopCurrent_v2)                     \
  F(cuCtxSynchronize)                       \
  F(cuStreamCreate)                         \
  F(cuStreamDestroy_v2)                     \
  F(cuStreamSynchronize)                    \
  F(cuStreamGetCtx)                         \
  F(cuEventCreate)                          \
  F(cuEventDestroy_v2)                      \
  F(cuEventRecord)                          \
  F(cuEventQuery)                           \
  F(cuEventSynchronize)                     \
  F(cuMemGetInfo_v2)                        \
  F(cuMemCreate)                            \
  F(cuMemRelease)                           \
  F(cuMemExportToShareableHandle)           \
  F(cuMemImportFromShareableHandle)         \
  F(cuMemGetAllocationGranularity)          \
  F(cuMemGetAllocationPropertiesFromHandle) \
  F(cuMemAddressReserve)                    \
  F(cuMemAddressFree)                       \
  F(cuMemMap)                               \
  F(cuMemUnmap)                             \
  F(cuMemSetAccess)                         \
  F(cuMemAlloc_v2)                          \
  F(cuMemFree_v2)                           \
  F(cuIpcGetMemHandle)                      \
  F(cuIpcOpenMemHandle_v2)                  \
  F(cuIpcCloseMemHandle)                    \
  F(cuMemcpyDtoH_v2)                        \
  F(cuMemcpyHtoD_v2)                        \
  F(cuMemcpyDtoHAsync_v2)                   \
  F(cuMemcpyHtoDAsync_v2)                   \
  F(cuMemHostRegister_v2)                   \
  F(cuMemHostUnregister)                    \
  F(cuMemsetD8_v2)

// The NVIDIA driver, loaded at run time so that one binary runs with and
// without it. Immutable once loaded; thread-safe, as the driver is.
class CudaDriver {
 public:
  // Loads and initialises the driver on the first call that succeeds, and
  // never unloads it. FAILED_PRECONDITION, with what to do, when there is no
  // driver, it is too old, no GPU is visible, or this is a child forked from a
  // process that had loaded it.
  [[nodiscard]] static absl::StatusOr<const CudaDriver*> Get();

  // OK, or the error's meaning (cuda_status.h). `call` names the function.
  [[nodiscard]] absl::Status Check(CUresult result,
                                   absl::string_view call) const;

// NOLINTNEXTLINE(bugprone-macro-parentheses): a declared name takes none
#define GMB_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  GMB_CUDA_FUNCTIONS(GMB_CUDA_MEMBER)
#undef GMB_CUDA_MEMBER

 private:
  CudaDriver() = default;
  static absl::StatusOr<const CudaDriver*> Load();
};

// Calls a driver function and turns the answer into a status that names it.
#define GMB_CUDA(driver, name, ...) \
  (driver).Check((driver).name(__VA_ARGS__), #name)

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_CUDA_DRIVER_H_
