#ifndef GMB_CLIENT_CLI_UPGRADE_STARTED_AS_H_
#define GMB_CLIENT_CLI_UPGRADE_STARTED_AS_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "client/cli/upgrade/launch.h"
#include "client/session/broker_process.h"

namespace gmb::cli {

// How a broker that runs was started, as far as /proc shows it. Owns what the
// Launch refers to. Move-only.
struct StartedAs {
  // Of the same again. Its executable is the very file that runs, where that
  // can be opened, also if another one is at its path by now.
  Launch launch;
  base::UniqueFd executable;
  std::array<base::UniqueFd, 3> stdio;
  // The file at launch.program is another one than the one that runs.
  bool replaced = false;
  // Its own user sees less than root: environment and working directory are this
  // process's, and outputs go where this process's go.
  bool hidden = false;
  // The systemd unit whose main process it is, with what systemctl needs to find
  // it: {"--user", "--", "gmbd.service"}. Empty: nothing is known to start it again.
  std::vector<std::string> unit;
};

// PERMISSION_DENIED for others than root and the broker's user.
// FAILED_PRECONDITION: it runs in a container.
[[nodiscard]] absl::StatusOr<StartedAs> ReadStartedAs(
    const internal::BrokerProcess& broker);

// systemctl with these words, to its end: what it printed.
[[nodiscard]] absl::StatusOr<std::string> Systemctl(
    const std::vector<std::string>& words);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_UPGRADE_STARTED_AS_H_
