#ifndef GMB_CLIENT_CLI_COMMANDS_KEEPER_FINDINGS_H_
#define GMB_CLIENT_CLI_COMMANDS_KEEPER_FINDINGS_H_

#include <string>

#include "client/cli/commands/findings.h"

namespace gmb::cli {

// Where the units have it.
inline constexpr char kUsualKeeper[] = "/run/gmb-keeper/keeper.sock";

// Of `gmb doctor`: memory and sessions that a keeper has and no broker serves.
// `socket` empty: that of the usual place, of which nothing is said where none
// can be asked.
[[nodiscard]] Findings CheckKeeper(const std::string& socket);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_KEEPER_FINDINGS_H_
