#ifndef GMB_CLIENT_CLI_ERROR_REPORT_H_
#define GMB_CLIENT_CLI_ERROR_REPORT_H_

#include "absl/status/status.h"
#include "client/cli/context.h"
#include "client/cli/exit_code.h"

namespace gmb::cli {

// Says on context.err what went wrong, why, and what to do; one JSON line with
// --output json. Returns the exit code that goes with it.
ExitCode ReportError(const absl::Status& status, const Context& context);

[[nodiscard]] ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_ERROR_REPORT_H_
