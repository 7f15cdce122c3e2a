// The broker's start: opens the devices and sizes their pools.
#include "broker/daemon/pool_setup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/daemon/file_state.h"
#include "broker/log/logging.h"
#include "device/devices.h"
#include "proto/amount_text.h"

namespace gmb::broker {
namespace {

// Handles of a GPU's pool that are kept ahead for requests smaller than whole
// slabs: 32 GiB of 64 MiB.
constexpr uint64_t kReadyTails = 512;

absl::StatusOr<std::unique_ptr<device::Allocator>> OpenAllocator(
    const DeviceConfig& device) {
  switch (device.kind) {
    case device::DeviceKind::kHost:
      return device::OpenHostAllocator({device.host_bytes, device.name});
    case device::DeviceKind::kVmm:
      return device::OpenVmmAllocator(device.name);
    case device::DeviceKind::kIpc:
      return device::OpenIpcAllocator(device.name);
  }
  return absl::InvalidArgumentError("unknown kind of device");
}

// The bytes that a share of the device is a share of, if so many are free. Host
// memory has no headroom: no process needs a CUDA context there.
uint64_t ShareOfBytes(const BrokerConfig& config, const DeviceConfig& device,
                      uint64_t free_bytes) {
  if (device.kind == device::DeviceKind::kHost) return free_bytes;
  const uint64_t headroom =
      device.headroom_bytes.value_or(config.headroom_bytes);
  return free_bytes - std::min(free_bytes, headroom);
}

bool ChangedInFile(const BrokerConfig& config, const DeviceConfig& device,
                   const std::string& uuid,
                   const std::map<std::string, std::string>& by_file) {
  const auto last = by_file.find(uuid);
  return last != by_file.end() &&
         last->second != WriteAmount(FilePool(config, device));
}

absl::Status AtDevice(const DeviceConfig& device, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(device.name, ": ", status.message()));
}

}  // namespace

absl::StatusOr<uint64_t> PoolBytes(const BrokerConfig& config,
                                   const DeviceConfig& device,
                                   uint64_t free_bytes,
                                   uint64_t granularity_bytes) {
  // A host device is made as large as its pool is to be.
  if (device.kind == device::DeviceKind::kHost) return free_bytes;
  const quota::Amount pool = device.pool.value_or(config.pool);
  // A size in bytes says itself what it leaves: the headroom bounds shares.
  const uint64_t share_of = ShareOfBytes(config, device, free_bytes);
  const uint64_t bytes = pool.Resolve(
      pool.is_fraction() ? share_of : free_bytes, granularity_bytes);
  if (bytes < granularity_bytes || bytes > free_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(device.name, ": the pool does not fit: free memory is ",
                     proto::FormatBytes(free_bytes), ", the headroom ",
                     proto::FormatBytes(free_bytes - share_of),
                     ", the pool would be ", proto::FormatBytes(bytes),
                     ": free the device, or change --pool or --headroom"));
  }
  return bytes;
}

absl::StatusOr<std::vector<PreparedPool>> PreparePools(
    const BrokerConfig& config,
    const std::map<std::string, quota::Amount>& stored_targets, Keeper* keeper,
    std::atomic<SlabId>* slab_ids,
    const std::map<std::string, std::string>& by_file, const KeptSlabs& kept) {
  std::vector<PreparedPool> pools;
  for (const DeviceConfig& device : config.devices) {
    absl::StatusOr<std::unique_ptr<device::Allocator>> allocator =
        OpenAllocator(device);
    if (!allocator.ok()) return AtDevice(device, allocator.status());
    const device::DeviceInfo info = (*allocator)->info();
    const auto found = kept.find(info.uuid);
    const KeptOnDevice its =
        found == kept.end() ? KeptOnDevice() : found->second;
    absl::StatusOr<std::unique_ptr<DeviceWorker>> worker = DeviceWorker::Create(
        *std::move(allocator), keeper, slab_ids, its.slabs, its.baseline_bytes);
    if (!worker.ok()) return AtDevice(device, worker.status());
    // Else a start that fails further on would end what it has not adopted yet.
    // At an orderly stop all of it is given back with the keeper's Done.
    if (!kept.empty()) (*worker)->LeaveAlone();
    const uint64_t free_bytes = (*worker)->baseline_bytes();
    const uint64_t share_of = ShareOfBytes(config, device, free_bytes);
    absl::StatusOr<uint64_t> bytes =
        PoolBytes(config, device, free_bytes, info.granularity_bytes);
    if (!bytes.ok()) return bytes.status();
    quota::Amount asked = device.pool.value_or(config.pool);
    if (auto stored = stored_targets.find(info.uuid);
        stored != stored_targets.end() &&
        !ChangedInFile(config, device, info.uuid, by_file)) {
      asked = stored->second;
      bytes =
          std::clamp(stored->second.Resolve(
                         stored->second.is_fraction() ? share_of : free_bytes,
                         info.granularity_bytes),
                     info.granularity_bytes, free_bytes);
    }
    PreparedPool pool{.name = device.name,
                      .options = {.worker = *std::move(worker),
                                  .copier = nullptr,
                                  .target_bytes = *bytes,
                                  .share_of_bytes = share_of,
                                  .slabs = {},
                                  .wanted = asked,
                                  .largest_bytes = *bytes}};
    if (device.kind != device::DeviceKind::kHost) {
      const uint64_t total = info.total_bytes;
      pool.options.largest_bytes = std::max(
          *bytes,
          asked.Resolve(
              asked.is_fraction() ? ShareOfBytes(config, device, total) : total,
              info.granularity_bytes));
    }
    pool.options.slabs = SlabPool::DefaultOptions(
        *bytes, info.granularity_bytes, pool.options.largest_bytes);
    if (auto wanted = device.float_bytes.has_value() ? device.float_bytes
                                                     : config.float_bytes) {
      pool.options.slabs.float_target_bytes = *wanted;
    }
    pool.options.slabs.one_slab_a_lease =
        device.kind == device::DeviceKind::kIpc;
    // To create one takes a driver that clears memory first.
    if (device.kind == device::DeviceKind::kVmm) {
      pool.options.slabs.max_ready_tails = kReadyTails;
      pool.options.slabs.least_standing_bytes = info.granularity_bytes;
    }
    pool.options.slabs.reuse_for =
        quota::Nanoseconds(absl::ToInt64Nanoseconds(config.reuse_for));
    pools.push_back(std::move(pool));
  }
  return pools;
}

ImportedSlabs ImportedBy(const std::vector<PreparedPool>& pools) {
  ImportedSlabs all;
  for (const PreparedPool& pool : pools) {
    for (const auto& [id, slab] : pool.options.worker->imported())
      all.emplace(id, slab);
    for (const auto& [id, why] : pool.options.worker->import_errors()) {
      LogEvent(LogLevel::kWarning, "slab_not_imported",
               {{"slab", id}, {"message", why.message()}});
    }
  }
  return all;
}

std::map<std::string, std::string> UuidsOf(
    const std::vector<PreparedPool>& pools) {
  std::map<std::string, std::string> uuids;
  for (const PreparedPool& pool : pools)
    uuids[pool.name] = pool.options.worker->info().uuid;
  return uuids;
}

}  // namespace gmb::broker
