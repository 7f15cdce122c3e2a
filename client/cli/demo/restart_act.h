#ifndef GMB_CLIENT_CLI_DEMO_RESTART_ACT_H_
#define GMB_CLIENT_CLI_DEMO_RESTART_ACT_H_

#include "absl/status/status.h"
#include "client/cli/demo/stage.h"

namespace gmb::cli {

// The broker is killed while four processes hold memory and one asks for more.
// The next one has everything from the keeper: the same sessions and leases,
// and the request is granted though nobody asks again. `batch` is to hold a
// small lease, and a twentieth of the pool is to be free.
[[nodiscard]] absl::Status ReplaceBroker(Stage& stage);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_RESTART_ACT_H_
