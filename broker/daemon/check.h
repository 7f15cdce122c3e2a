#ifndef GMB_BROKER_DAEMON_CHECK_H_
#define GMB_BROKER_DAEMON_CHECK_H_

#include "broker/config/broker_config.h"

namespace gmb::broker {

// `gmbd --check`: looks at directories and stored changes, opens every device,
// and says, on standard output, what would be served; false when something would
// keep the broker from starting. Makes and changes nothing.
[[nodiscard]] bool Check(const BrokerConfig& config);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_CHECK_H_
