#ifndef GMB_BROKER_DAEMON_FILE_STATE_H_
#define GMB_BROKER_DAEMON_FILE_STATE_H_

#include <map>
#include <string>
#include <vector>

#include "broker/config/broker_config.h"
#include "broker/declared/merge.h"

namespace gmb::broker {

// The file's tenants and pools, by which it is compared with itself as last
// applied. `uuids` maps the devices' configured names to their UUIDs.
[[nodiscard]] FileState FileStateOf(
    const BrokerConfig& config,
    const std::map<std::string, std::string>& uuids);

// The size of a device's pool as the file, or a flag, has it.
[[nodiscard]] quota::Amount FilePool(const BrokerConfig& config,
                                     const DeviceConfig& device);
// Those sizes when the file was last applied, by UUID.
[[nodiscard]] std::map<std::string, std::string> FilePools(
    const Declared& declared);

// The policy with quotas of a device by its UUID, however the file names it.
[[nodiscard]] TenantPolicy WithUuids(
    TenantPolicy policy, const std::map<std::string, std::string>& uuids);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_FILE_STATE_H_
