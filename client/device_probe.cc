// `gmb doctor`'s and the demo's view of this machine's GPUs.
#include "client/device_probe.h"

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
  probe.built_in = cuda.built_in;
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
    const auto processes = device::DeviceProcesses(gpu.uuid);
    const auto used = device::DeviceUsedBytes(gpu.uuid);
    if (!processes.ok() || !used.ok()) continue;
    GpuUse use{.uuid = gpu.uuid, .used_bytes = *used};
    for (const device::ProcessUsage& process : *processes)
      use.listed_bytes += process.used_bytes;
    uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace gmb::internal
