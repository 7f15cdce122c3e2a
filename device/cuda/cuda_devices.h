#ifndef GMB_DEVICE_CUDA_CUDA_DEVICES_H_
#define GMB_DEVICE_CUDA_CUDA_DEVICES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "device/copy_engine.h"
#include "device/mapper.h"
#include "device/stream_fences.h"

namespace gmb::device {

// The CUDA halves of OpenMapper, OpenCopier and OpenStreamFences.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Mapper>> OpenCudaMapper(
    const DeviceInfo& info);
[[nodiscard]] absl::StatusOr<std::unique_ptr<CopyEngine>> OpenCudaCopyEngine(
    const DeviceInfo& info, unsigned streams);
[[nodiscard]] absl::StatusOr<std::unique_ptr<StreamFences>>
OpenCudaStreamFences(const DeviceInfo& info);

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_CUDA_DEVICES_H_
