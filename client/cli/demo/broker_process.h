#ifndef GMB_CLIENT_CLI_DEMO_BROKER_PROCESS_H_
#define GMB_CLIENT_CLI_DEMO_BROKER_PROCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/admin_client.h"
#include "client/cli/demo/child_process.h"

namespace gmb::cli {

// A real gmbd in a directory of the demo's own, and an operator's connection
// to it. The process ends with the object.
class BrokerProcess {
 public:
  struct Options {
    std::string program;                    // path of gmbd
    std::vector<std::string> device_flags;  // --device ...
    std::string config;                     // YAML: the tenants
    std::string dir;  // takes sockets, state, config and log
    int interrupt_fd = -1;
  };
  // Returns once it answers. The error ends with the last lines of its log.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<BrokerProcess>> Start(
      const Options& options);

  [[nodiscard]] const AdminClient& admin() const { return *admin_; }
  [[nodiscard]] const std::string& socket_dir() const { return socket_dir_; }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  [[nodiscard]] bool running() { return process_.running(); }

  // SIGTERM; how it ended. No call of admin() may be in progress.
  [[nodiscard]] absl::StatusOr<std::string> Stop(absl::Duration patience);

 private:
  BrokerProcess(ChildProcess process, std::string socket_dir)
      : process_(std::move(process)), socket_dir_(std::move(socket_dir)) {}

  ChildProcess process_;
  std::string socket_dir_;
  std::unique_ptr<AdminClient> admin_;
};

// gmbd as it was built or installed with this program, else in PATH. NOT_FOUND
// says what to do.
[[nodiscard]] absl::StatusOr<std::string> FindBroker();

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_BROKER_PROCESS_H_
