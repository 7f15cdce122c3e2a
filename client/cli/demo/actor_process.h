#ifndef GMB_CLIENT_CLI_DEMO_ACTOR_PROCESS_H_
#define GMB_CLIENT_CLI_DEMO_ACTOR_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/demo/child_process.h"
#include "client/cli/demo/line_channel.h"
#include "client/cli/text/json.h"

namespace gmb::cli {

// The demo's end of one actor (actor.h): a tenant's process that does what it
// is told. Used by one thread. The process ends with the object.
class ActorProcess {
 public:
  struct Options {
    std::string program;     // gmb-demo itself
    std::string socket_dir;  // the tenant's
    std::string tenant;
    std::string log_path;
    pid_t group = 0;
    int interrupt_fd = -1;  // ends every wait with CANCELLED
  };
  // Returns once it has connected to the broker.
  [[nodiscard]] static absl::StatusOr<ActorProcess> Start(
      const Options& options);

  [[nodiscard]] absl::Status AskLease(absl::string_view name, uint64_t bytes,
                                      absl::Duration wait,
                                      bool expect_zero = false);
  [[nodiscard]] absl::Status AskVerify();
  [[nodiscard]] absl::Status AskRelease(absl::string_view name);
  [[nodiscard]] absl::Status AskIdle();
  [[nodiscard]] absl::Status AskWake(absl::Duration wait);
  [[nodiscard]] absl::Status AskQuit();

  // The next event that is one of `names`; others stay for later calls. A
  // failure of the actor is returned as its status. DEADLINE_EXCEEDED when the
  // event does not come in `patience`.
  [[nodiscard]] absl::StatusOr<Json> Await(
      std::initializer_list<absl::string_view> names,
      absl::Duration patience = absl::Seconds(30));

  [[nodiscard]] const std::string& tenant() const { return options_.tenant; }
  [[nodiscard]] ChildProcess& process() { return process_; }

 private:
  ActorProcess(Options options, ChildProcess process, LineChannel channel)
      : options_(std::move(options)),
        process_(std::move(process)),
        channel_(std::move(channel)) {}

  absl::Status Send(const Json& command);

  Options options_;
  ChildProcess process_;
  LineChannel channel_;
  std::deque<Json> unread_;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_ACTOR_PROCESS_H_
