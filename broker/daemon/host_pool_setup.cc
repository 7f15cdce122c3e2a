// The broker's start: sets host memory aside for contents of evicted leases.
#include "broker/daemon/host_pool_setup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/hostpool/copier.h"
#include "device/hostpool/page_locker.h"
#include "proto/amount_text.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kDefaultShare = 4;  // one part of so many

bool CanBeEvicted(const PreparedPool& pool) {
  return pool.options.worker->info().kind != device::DeviceKind::kIpc;
}

}  // namespace

HostMemory HostMemoryOf(
    const BrokerConfig& config, const std::vector<PreparedPool>& pools,
    const absl::StatusOr<device::AvailableMemory>& available) {
  HostMemory memory;
  if (config.host_pool_bytes.has_value()) {
    memory.bytes = *config.host_pool_bytes;
    return memory;
  }
  memory.by_default = true;
  if (!available.ok()) {
    memory.note = std::string(available.status().message());
    return memory;
  }
  uint64_t host_devices = 0;
  for (const DeviceConfig& device : config.devices)
    host_devices += device.host_bytes;
  uint64_t most = 0;
  for (const PreparedPool& pool : pools) {
    if (CanBeEvicted(pool)) most += pool.options.target_bytes;
  }
  const uint64_t left =
      available->bytes - std::min(available->bytes, host_devices);
  memory.bytes = std::min(left / kDefaultShare, most);
  memory.bytes -= memory.bytes % device::kHostPoolGranularityBytes;
  memory.note = absl::StrCat(
      memory.bytes == most ? "as much as the pools, of "
                           : "a quarter of what is available, ",
      proto::FormatBytes(available->bytes), " (", available->source, ")");
  if (host_devices > 0) {
    memory.note += absl::StrCat(" less the host devices' ",
                                proto::FormatBytes(host_devices));
  }
  return memory;
}

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
  auto pool = device::HostPool::Create({.bytes = memory.bytes,
                                        .kept = std::move(memory.kept),
                                        .on_demand = memory.by_default},
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
    if (!CanBeEvicted(pool)) continue;
    auto copier = device::OpenCopier(info, host_pool);
    if (!copier.ok()) return copier.status();
    pool.options.copier = *std::move(copier);
  }
  return absl::OkStatus();
}

}  // namespace gmb::broker
