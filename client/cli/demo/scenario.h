#ifndef GMB_CLIENT_CLI_DEMO_SCENARIO_H_
#define GMB_CLIENT_CLI_DEMO_SCENARIO_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/demo/stage.h"

namespace gmb::cli {

// The tenants of the demo, as a configuration file of gmbd.
[[nodiscard]] std::string ScenarioConfig();

// Plays all acts. Every act drives the processes by what they and the broker
// answer, and puts what it shows on the check list. An error: the play broke
// off, and why.
[[nodiscard]] absl::Status PlayScenario(Stage& stage);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_SCENARIO_H_
