#ifndef GMB_BROKER_SERVER_HEALTH_QUESTION_H_
#define GMB_BROKER_SERVER_HEALTH_QUESTION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gmb::broker {

// Asks the gRPC server at `socket`, over a connection of its own, whether it is
// well (grpc.health.v1.Health/Check). OK: it answered, whatever it said, since
// a broker that drains is alive. Waits for `patience` at most.
// RESOURCE_EXHAUSTED: it could not be asked, for want of a file descriptor.
[[nodiscard]] absl::Status AskHealth(const std::string& socket,
                                     absl::Duration patience);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_HEALTH_QUESTION_H_
