#ifndef GMB_BENCH_BROKER_KEEPER_PROCESS_H_
#define GMB_BENCH_BROKER_KEEPER_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/cli/demo/child_process.h"

namespace gmb::bench {

// The gmb-keeper beside this program, for a broker in `dir`. Ends with the
// object. Move-only.
class KeeperProcess {
 public:
  // Returns when it answers.
  [[nodiscard]] static absl::StatusOr<KeeperProcess> Start(
      const std::string& dir);

  // What the broker is started with: gmbd --keeper PATH.
  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }

 private:
  KeeperProcess(cli::ChildProcess process, std::string socket)
      : process_(std::move(process)), socket_(std::move(socket)) {}

  cli::ChildProcess process_;
  std::string socket_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_KEEPER_PROCESS_H_
