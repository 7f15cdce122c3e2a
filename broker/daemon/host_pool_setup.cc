// The broker's start: sets host memory aside for contents of evicted leases.
#include "broker/daemon/host_pool_setup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/hostpool/copier.h"
#include "device/hostpool/page_locker.h"

namespace gmb::broker {

absl::StatusOr<std::unique_ptr<device::HostPool>> OpenHostPool(
    const BrokerConfig& config, HostMemory memory) {
  if (memory.bytes == 0) return nullptr;
  std::unique_ptr<device::PageLocker> locker;
  const auto gpu =
      std::find_if(config.devices.begin(), config.devices.end(),
                   [](const DeviceConfig& device) {
                     return device.kind == device::DeviceKind::kVmm;
                   });
  if (gpu != config.devices.end()) {
    auto opened = device::OpenCudaPageLocker(gpu->name);
    if (!opened.ok()) return opened.status();
    locker = *std::move(opened);
  }
  auto pool = device::HostPool::Create(
      {.bytes = memory.bytes, .kept = std::move(memory.kept)},
      std::move(locker));
  if (pool.ok()) return pool;
  return absl::Status(pool.status().code(),
                      absl::StrCat("--host-pool: ", pool.status().message()));
}

absl::Status AddCopiers(device::HostPool* host_pool,
                        std::vector<PreparedPool>* pools) {
  if (host_pool == nullptr) return absl::OkStatus();
  for (PreparedPool& pool : *pools) {
    const device::DeviceInfo& info = pool.options.worker->info();
    if (info.kind != device::DeviceKind::kHost)
      pool.options.worker->SetHostPool(host_pool);
    if (info.kind == device::DeviceKind::kIpc) continue;
    auto copier = device::OpenCopier(info, host_pool);
    if (!copier.ok()) return copier.status();
    pool.options.copier = *std::move(copier);
  }
  return absl::OkStatus();
}

}  // namespace gmb::broker
