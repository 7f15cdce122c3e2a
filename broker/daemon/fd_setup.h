#ifndef GMB_BROKER_DAEMON_FD_SETUP_H_
#define GMB_BROKER_DAEMON_FD_SETUP_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/config/broker_config.h"
#include "broker/daemon/pool_setup.h"
#include "broker/fd_limit.h"

namespace gmb::broker {

// How many handles and sessions a broker of these pools serves, after raising
// this process's limit on open files as far as the system lets it. `tenants`:
// how many there are at the start; each one made later takes two files more.
[[nodiscard]] absl::StatusOr<FdPlan> PlanFds(
    const BrokerConfig& config, const std::vector<PreparedPool>& pools,
    size_t tenants);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_FD_SETUP_H_
