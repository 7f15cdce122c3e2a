#ifndef GMB_BROKER_DAEMON_START_ADVICE_H_
#define GMB_BROKER_DAEMON_START_ADVICE_H_

#include <string>

#include "absl/status/status.h"

namespace gmb::broker {

// Why the broker cannot start, and what to do about it where that is not said
// already: missing rights, and too few file descriptors.
[[nodiscard]] std::string WithAdvice(const absl::Status& why);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_START_ADVICE_H_
