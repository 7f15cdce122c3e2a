#ifndef GMB_BROKER_DAEMON_CHANGED_GUARANTEES_H_
#define GMB_BROKER_DAEMON_CHANGED_GUARANTEES_H_

#include <string>

#include "absl/status/status.h"
#include "broker/config/broker_config.h"

namespace gmb::broker {

// Why the file's tenants were refused. Where their guarantees do not fit, with
// the lines of `file` at which those that changed are: "gmb.yaml:3 (tenant b)".
[[nodiscard]] absl::Status NamingLines(const absl::Status& refused,
                                       const BrokerConfig& before,
                                       const BrokerConfig& after,
                                       const std::string& file);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_CHANGED_GUARANTEES_H_
