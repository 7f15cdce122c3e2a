#ifndef GMB_CLIENT_CLI_CONFIRM_H_
#define GMB_CLIENT_CLI_CONFIRM_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/context.h"

namespace gmb::cli {

// Asks a person whether to go on with what `what` says, a line or more. OK: yes.
// FAILED_PRECONDITION: no, or there is no terminal to ask on, which the message
// says together with --yes.
[[nodiscard]] absl::Status Confirm(const Context& context,
                                   const std::string& what);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_CONFIRM_H_
