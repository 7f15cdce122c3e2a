#ifndef GMB_CLIENT_SESSION_BROKER_PROCESS_H_
#define GMB_CLIENT_SESSION_BROKER_PROCESS_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::internal {

// The process of a broker, for its operators.
struct BrokerProcess {
  pid_t pid = 0;
  uid_t uid = 0;
  base::UniqueFd pidfd;
};

// The process that listens on the operators' socket of this directory, as the
// kernel says. UNAVAILABLE: there is none. FAILED_PRECONDITION: a process of
// another pid namespace.
[[nodiscard]] absl::StatusOr<BrokerProcess> FindBrokerProcess(
    const std::string& socket_dir);

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_BROKER_PROCESS_H_
