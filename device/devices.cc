// Opens devices by name.
#include "device/devices.h"

#include <utility>

#include "device/cuda/cuda_devices.h"
#include "device/host/host_allocator.h"
#include "device/host/host_mapper.h"
#include "device/host/host_stream_fences.h"

namespace gmb::device {

absl::StatusOr<std::unique_ptr<Allocator>> OpenHostAllocator(
    HostOptions options) {
  return HostAllocator::Open(std::move(options));
}

absl::StatusOr<std::unique_ptr<Mapper>> OpenMapper(const DeviceInfo& info) {
  if (info.kind != DeviceKind::kHost) return OpenCudaMapper(info);
  return std::make_unique<HostMapper>(info);
}

absl::StatusOr<std::unique_ptr<StreamFences>> OpenStreamFences(
    const DeviceInfo& info) {
  if (info.kind != DeviceKind::kHost) return OpenCudaStreamFences(info);
  return std::make_unique<HostStreamFences>();
}

}  // namespace gmb::device
