#include "device/devices.h"

#include <utility>

#include "device/cuda_devices.h"
#include "device/host_allocator.h"
#include "device/host_mapper.h"

namespace gmb::device {

absl::StatusOr<std::unique_ptr<Allocator>> OpenHostAllocator(
    HostOptions options) {
  return HostAllocator::Open(std::move(options));
}

absl::StatusOr<std::unique_ptr<Mapper>> OpenMapper(const DeviceInfo& info) {
  if (info.kind != DeviceKind::kHost) return OpenCudaMapper(info);
  return std::make_unique<HostMapper>(info);
}

}  // namespace gmb::device
