#ifndef GMB_BROKER_CONFIG_RESTART_H_
#define GMB_BROKER_CONFIG_RESTART_H_

#include <string>
#include <vector>

#include "broker/config/broker_config.h"

namespace gmb::broker {

// The differences between the configuration that a broker runs with and one
// that was read since that hold after a restart alone: "host_pool 0 -> 2GiB".
// The tenants, and what a reload changes by itself, are left out.
[[nodiscard]] std::vector<std::string> NeedRestart(const BrokerConfig& running,
                                                   const BrokerConfig& next);

}  // namespace gmb::broker

#endif  // GMB_BROKER_CONFIG_RESTART_H_
