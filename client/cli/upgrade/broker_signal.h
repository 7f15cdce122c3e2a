#ifndef GMB_CLIENT_CLI_UPGRADE_BROKER_SIGNAL_H_
#define GMB_CLIENT_CLI_UPGRADE_BROKER_SIGNAL_H_

#include "absl/status/status.h"
#include "client/session/broker_process.h"

namespace gmb::cli {

// A broker is told by a signal what is more than an operator's right.

// FAILED_PRECONDITION: a process that does not wait for this signal, and would
// die of it.
[[nodiscard]] absl::Status CheckUnderstands(
    const internal::BrokerProcess& broker, int signal);

// PERMISSION_DENIED without the right to.
[[nodiscard]] absl::Status Tell(const internal::BrokerProcess& broker,
                                int signal);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_UPGRADE_BROKER_SIGNAL_H_
