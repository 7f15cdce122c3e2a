#ifndef GMB_CLIENT_CLI_DEMO_BURST_ACT_H_
#define GMB_CLIENT_CLI_DEMO_BURST_ACT_H_

#include "absl/status/status.h"
#include "client/cli/demo/stage.h"

namespace gmb::cli {

// vision, which holds 3 and 4 twentieths of the pool with a guarantee of 3, is
// idle; batch needs 4 for a while, and one is free. So one of vision's leases
// goes to the host pool, and is back when it wakes.
[[nodiscard]] absl::Status LendIdleMemory(Stage& stage);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_BURST_ACT_H_
