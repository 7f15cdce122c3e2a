#ifndef GMB_CLIENT_CLI_ERROR_REPORT_H_
#define GMB_CLIENT_CLI_ERROR_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/context.h"
#include "client/cli/exit_code.h"

namespace gmb::cli {

// Says on context.err what went wrong, why, and what to do; one JSON line with
// --output json. Returns the exit code that goes with it.
ExitCode ReportError(const absl::Status& status, const Context& context);

// The same for a command that goes on without it: `instead` is what it does.
// The JSON object is named warning, and is otherwise that of an error.
void ReportWarning(const absl::Status& status, const std::string& instead,
                   const Context& context);

[[nodiscard]] ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_ERROR_REPORT_H_
