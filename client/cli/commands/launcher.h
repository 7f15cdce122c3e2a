#ifndef GMB_CLIENT_CLI_COMMANDS_LAUNCHER_H_
#define GMB_CLIENT_CLI_COMMANDS_LAUNCHER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/context.h"

namespace gmb::cli {

struct RunOptions {
  std::string tenant;             // empty: the one that the socket says
  std::string tenant_token_file;  // empty: none
  std::optional<absl::Duration> wait;
  std::optional<bool> native_without_broker;
  std::optional<absl::Duration> park_after;
  std::string vmm;    // lease or native; empty: as the environment says
  std::string group;  // empty: none
  std::string park;   // auto, off or force; empty: as the environment says
  bool quiet = false;
  bool verbose = false;
  std::string preload;               // empty: where gmb was installed
  std::vector<std::string> program;  // and its arguments; not empty
};

// Becomes the program, with the preload library in it; returns only when that
// failed. A broker has to answer first, unless it may do without.
absl::StatusOr<ExitCode> LaunchProgram(Context& context,
                                       const RunOptions& options);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_LAUNCHER_H_
