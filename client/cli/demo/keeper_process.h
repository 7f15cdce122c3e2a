#ifndef GMB_CLIENT_CLI_DEMO_KEEPER_PROCESS_H_
#define GMB_CLIENT_CLI_DEMO_KEEPER_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/demo/child_process.h"

namespace gmb::cli {

// A gmb-keeper for a broker in `dir`, with a directory of its own there. The
// process ends with the object, and earlier where its broker stops in order.
// Move-only.
class KeeperProcess {
 public:
  // Returns when it answers. `interrupt_fd` readable: CANCELLED.
  [[nodiscard]] static absl::StatusOr<KeeperProcess> Start(
      const std::string& dir, int interrupt_fd = -1);

  // The socket that the broker is started with: gmbd --keeper PATH.
  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  // How it ended; its broker has stopped in order.
  [[nodiscard]] absl::StatusOr<std::string> AwaitEnd(absl::Duration patience);

 private:
  KeeperProcess(ChildProcess process, std::string socket)
      : process_(std::move(process)), socket_(std::move(socket)) {}

  ChildProcess process_;
  std::string socket_;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_KEEPER_PROCESS_H_
