#ifndef GMB_CLIENT_CLI_COMMANDS_KEEPER_LOOK_H_
#define GMB_CLIENT_CLI_COMMANDS_KEEPER_LOOK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "keeper/link/keeper_link.h"
#include "keeper/wire/messages.h"

namespace gmb::cli {

// A keeper at one moment.
struct KeeperLook {
  keeper::KeeperStatus status;
  std::optional<keeper::KeptCount> count;  // one of an older release has none

  // Kept sessions whose processes have ended, as far as is known.
  [[nodiscard]] uint64_t ended_sessions() const {
    return count.has_value() ? count->sessions - count->living_sessions : 0;
  }
};

// The broker's pid as the keeper sees it, in words: "pid 4711".
[[nodiscard]] std::string BrokerName(const keeper::KeeperStatus& status);

// `link` may be broken afterwards.
[[nodiscard]] absl::StatusOr<KeeperLook> LookAtKeeper(keeper::KeeperLink* link);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_KEEPER_LOOK_H_
