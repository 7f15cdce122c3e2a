#ifndef GMB_BROKER_CONFIG_CONFIG_H_
#define GMB_BROKER_CONFIG_CONFIG_H_

#include "absl/status/statusor.h"
#include "broker/config/broker_config.h"
#include "broker/config/flags.h"

namespace gmb::broker {

// Defaults, then the file, then the flags; checked as a whole. The error says
// everything that is wrong, one line each, with the place.
[[nodiscard]] absl::StatusOr<BrokerConfig> LoadConfig(const Flags& flags);

}  // namespace gmb::broker

#endif  // GMB_BROKER_CONFIG_CONFIG_H_
