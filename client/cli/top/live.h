#ifndef GMB_CLIENT_CLI_TOP_LIVE_H_
#define GMB_CLIENT_CLI_TOP_LIVE_H_

#include "absl/status/statusor.h"
#include "client/cli/context.h"
#include "client/cli/top/frame.h"

namespace gmb::cli::top {

// The live screen, on the process's terminal, until a key or a signal ends it.
[[nodiscard]] absl::StatusOr<ExitCode> RunLive(Context& context, Scene scene);

}  // namespace gmb::cli::top

#endif  // GMB_CLIENT_CLI_TOP_LIVE_H_
