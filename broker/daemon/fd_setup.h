#ifndef GMB_BROKER_DAEMON_FD_SETUP_H_
#define GMB_BROKER_DAEMON_FD_SETUP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "broker/config/broker_config.h"
#include "broker/daemon/pool_setup.h"
#include "broker/fd_limit.h"

namespace gmb::broker {

// How many handles and sessions a broker of these pools serves, after raising
// this process's limit on open files as far as the system lets it.
[[nodiscard]] absl::StatusOr<FdPlan> PlanFds(
    const BrokerConfig& config, const std::vector<PreparedPool>& pools);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_FD_SETUP_H_
