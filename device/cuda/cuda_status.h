#ifndef GMB_DEVICE_CUDA_CUDA_STATUS_H_
#define GMB_DEVICE_CUDA_CUDA_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::device {

// The meaning of the driver's errors to a caller. This is the one place where a
// CUresult turns into a status, with the codes that allocator.h promises and,
// where there is something to do about it, what to do. `call` is the driver
// function and `error_name` the driver's own word for `result`.
[[nodiscard]] absl::Status CudaStatus(CUresult result, absl::string_view call,
                                      absl::string_view error_name);

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_CUDA_STATUS_H_
