// The configuration file's tenants and pools, as fields that can be compared.
#include "broker/daemon/file_state.h"

#include <utility>

namespace gmb::broker {

FileState FileStateOf(const BrokerConfig& config,
                      const std::map<std::string, std::string>& uuids) {
  FileState file;
  for (const TenantConfig& tenant : config.tenants) {
    file.tenants[tenant.policy.name] =
        FieldsOf(WithUuids(tenant.policy, uuids));
  }
  for (const DeviceConfig& device : config.devices) {
    const auto uuid = uuids.find(device.name);
    if (uuid == uuids.end()) continue;
    file.pools[uuid->second] = {
        {kPoolSize, WriteAmount(FilePool(config, device))}};
  }
  return file;
}

quota::Amount FilePool(const BrokerConfig& config, const DeviceConfig& device) {
  if (device.kind == device::DeviceKind::kHost)
    return quota::Amount::Bytes(device.host_bytes);
  return device.pool.value_or(config.pool);
}

std::map<std::string, std::string> FilePools(const Declared& declared) {
  std::map<std::string, std::string> pools;
  for (const auto& [device, subject] : declared.pools) {
    if (const Written* const size = ByFile(subject, kPoolSize))
      pools[device] = size->value;
  }
  return pools;
}

TenantPolicy WithUuids(TenantPolicy policy,
                       const std::map<std::string, std::string>& uuids) {
  std::map<std::string, quota::TenantQuota> by_uuid;
  for (const auto& [device, quota] : policy.device_quotas) {
    const auto it = uuids.find(device);
    by_uuid[it == uuids.end() ? device : it->second] = quota;
  }
  policy.device_quotas = std::move(by_uuid);
  return policy;
}

}  // namespace gmb::broker
