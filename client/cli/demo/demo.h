#ifndef GMB_CLIENT_CLI_DEMO_DEMO_H_
#define GMB_CLIENT_CLI_DEMO_DEMO_H_

#include "absl/status/statusor.h"
#include "client/cli/commands/demo_options.h"
#include "client/cli/context.h"

namespace gmb::cli {

// Starts a broker and the processes of four tenants, plays the scenario, prints
// the check list, and leaves nothing behind. kFailed when a check failed or the
// play broke off.
absl::StatusOr<ExitCode> RunDemo(Context& context, const DemoOptions& options);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_DEMO_H_
