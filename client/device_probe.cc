// `gmb doctor`'s and the demo's view of this machine's GPUs.
#include "client/device_probe.h"

#include <algorithm>
#include <utility>

#include "device/devices.h"

namespace gmb::internal {
namespace {

DeviceKind KindOf(device::DeviceKind kind) {
  switch (kind) {
    case device::DeviceKind::kVmm:
      return DeviceKind::kVmm;
    case device::DeviceKind::kIpc:
      return DeviceKind::kIpc;
    case device::DeviceKind::kHost:
      return DeviceKind::kHost;
  }
  return DeviceKind::kUnknown;
}

}  // namespace

DeviceProbe ProbeDevices() {
  device::CudaProbe cuda = device::ProbeCuda();
  DeviceProbe probe;
  probe.machine_has_gpu = cuda.machine_has_gpu;
  probe.driver_version = std::move(cuda.driver_version);
  probe.problem = std::move(cuda.problem);
  for (device::DeviceInfo& gpu : cuda.gpus) {
    probe.gpus.push_back({.uuid = std::move(gpu.uuid),
                          .kind = KindOf(gpu.kind),
                          .name = std::move(gpu.name),
                          .granularity_bytes = gpu.granularity_bytes,
                          .total_bytes = gpu.total_bytes});
  }
  return probe;
}

std::vector<GpuUse> ProbeUses(const DeviceProbe& probe) {
  std::vector<GpuUse> uses;
  for (const Device& gpu : probe.gpus) {
    // Before and after: what a process takes or gives back meanwhile is not to
    // look like nobody's.
    const auto before = device::DeviceUsedBytes(gpu.uuid);
    const auto listed = device::DeviceListedBytes(gpu.uuid);
    const auto after = device::DeviceUsedBytes(gpu.uuid);
    if (!before.ok() || !listed.ok() || !after.ok()) continue;
    uses.push_back({.uuid = gpu.uuid,
                    .used_bytes = std::min(*before, *after),
                    .listed_bytes = *listed});
  }
  return uses;
}

}  // namespace gmb::internal
