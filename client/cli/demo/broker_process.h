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

  // SIGTERM, or SIGKILL; how it ended. No call of admin() may be in progress,
  // and none may come until it was started again.
  [[nodiscard]] absl::StatusOr<std::string> Stop(absl::Duration patience);
  [[nodiscard]] absl::StatusOr<std::string> Kill(absl::Duration patience);
  // With the same flags, once it has ended. Returns when it answers.
  [[nodiscard]] absl::Status StartAgain();
  // Its halves, for one that may be killed before it answers.
  [[nodiscard]] absl::Status Launch();
  [[nodiscard]] absl::Status AwaitAnswer();

 private:
  BrokerProcess(ChildProcess::Options command, ChildProcess process,
                std::string socket_dir, int interrupt_fd)
      : command_(std::move(command)),
        process_(std::move(process)),
        socket_dir_(std::move(socket_dir)),
        interrupt_fd_(interrupt_fd) {}

  ChildProcess::Options command_;
  ChildProcess process_;
  std::string socket_dir_;
  int interrupt_fd_;
  std::unique_ptr<AdminClient> admin_;
};

// gmbd: find_program.h.
[[nodiscard]] absl::StatusOr<std::string> FindBroker();

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_BROKER_PROCESS_H_
