#ifndef GMB_BROKER_DAEMON_CHECK_HANDOVER_H_
#define GMB_BROKER_DAEMON_CHECK_HANDOVER_H_

#include "broker/config/broker_config.h"

namespace gmb::broker {

// Whether this program could take the place of the broker that runs with this
// configuration: it reads what that one has stored, and its journal, as the
// keeper shows it. Says what it finds. The broker that runs notices nothing.
//
// Devices are not opened, for they are that broker's; so this does not see
// whether the file's guarantees fit.
[[nodiscard]] bool CheckHandover(const BrokerConfig& config);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_CHECK_HANDOVER_H_
