#ifndef GMB_CLIENT_CLI_UPGRADE_LAUNCH_H_
#define GMB_CLIENT_CLI_UPGRADE_LAUNCH_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace gmb::cli {

// The rights that a program gets.
struct Rights {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

// How a program is started.
struct Launch {
  std::string program;  // a path
  int executable = -1;  // unless it is -1, this file instead of the path's
  std::vector<std::string> arguments;       // with its name as the first
  std::vector<std::string> environment;     // "NAME=VALUE" each
  std::string directory;                    // empty: this process's
  std::array<int, 3> stdio = {-1, -1, -1};  // -1: /dev/null
  std::optional<Rights> rights;             // none: this process's
  std::map<int, rlimit> limits;             // as far as they may be set
  sigset_t mask{};                          // of signals that are blocked
};

// A program that was started, which outlives this process and is in a session
// of its own. Move-only.
class Launched {
 public:
  // The status says why it could not be started.
  static absl::StatusOr<Launched> Start(const Launch& launch);

  [[nodiscard]] pid_t pid() const { return pid_; }
  // How it ended: "exit code 0", "signal 9". None: not within `wait`.
  [[nodiscard]] std::optional<std::string> AwaitEnd(absl::Duration wait);
  // Its end is awaited, too.
  void Kill();

 private:
  Launched(pid_t pid, base::UniqueFd pidfd)
      : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_;
  base::UniqueFd pidfd_;
  std::string ended_;  // how; empty: not reaped yet
};

// Runs a program to its end, which has to be with exit code 0, and gives what it
// said. An error has that, too. DEADLINE_EXCEEDED: it was killed.
absl::StatusOr<std::string> RunToEnd(Launch launch, absl::Duration wait);

// Until the process is dead. False: not within `wait`.
[[nodiscard]] bool AwaitDeath(int pidfd, absl::Duration wait);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_UPGRADE_LAUNCH_H_
