#ifndef GMB_CLIENT_CLI_NO_ANSWER_H_
#define GMB_CLIENT_CLI_NO_ANSWER_H_

#include <string>

#include "absl/status/status.h"

namespace gmb::cli {

// Turns errors of sockets and gRPC, when a broker does not answer, into one
// sentence that says what to do next. An error of the broker itself (it has an
// ErrorDetail), or one that has nothing to do with the way to it, stays as it
// is. The results are UNAVAILABLE or DEADLINE_EXCEEDED, which the exit code 3
// stands for, or PERMISSION_DENIED. `socket_dir` is the broker's, absolute.

// Connecting failed.
[[nodiscard]] absl::Status NoBroker(const absl::Status& status,
                                    const std::string& socket_dir);
// So did connecting as an operator.
[[nodiscard]] absl::Status NoBrokerForOperators(const absl::Status& status,
                                                const std::string& socket_dir);
// The directory is a tenant's own, where there is nothing for operators.
[[nodiscard]] absl::Status NotForTenants(const std::string& socket_dir);
// The broker greeted, and its gRPC socket took no connection.
[[nodiscard]] absl::Status CrowdedBroker(const absl::Status& status,
                                         const std::string& socket_dir);
// A call ended that had a broker at its other end.
[[nodiscard]] absl::Status LostBroker(const absl::Status& status,
                                      const std::string& socket_dir);
// Whether it ended as calls do when their broker stops.
[[nodiscard]] bool LooksStopped(const absl::Status& status);
// And it did although the broker lives.
[[nodiscard]] absl::Status LostConnection(const absl::Status& status,
                                          const std::string& socket_dir);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_NO_ANSWER_H_
