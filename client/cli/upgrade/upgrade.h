#ifndef GMB_CLIENT_CLI_UPGRADE_UPGRADE_H_
#define GMB_CLIENT_CLI_UPGRADE_UPGRADE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/upgrade/started_as.h"
#include "client/session/broker_process.h"

namespace gmb::cli {

// One broker in another one's place. In steps, so that the command can say what
// it is about to do.
class Upgrade {
 public:
  // Of the broker that serves this directory. Without a `binary` the program is
  // what is at the path of the one that runs. Changes nothing.
  static absl::StatusOr<Upgrade> Of(const std::string& socket_dir,
                                    const std::string& binary);

  // Has the new program prove that it reads configuration, database and
  // journal: what it says. Changes nothing.
  [[nodiscard]] absl::StatusOr<std::string> Check() const;

  struct Done {
    pid_t pid = 0;        // of the one that serves now
    absl::Duration away;  // from the old one's signal on
  };
  // Has the old one leave all to the keeper, and starts the new one; if that
  // does not serve within `wait`, the old one again, which is an error.
  [[nodiscard]] absl::StatusOr<Done> Carry(absl::Duration wait) const;

  [[nodiscard]] pid_t old_pid() const { return broker_.pid; }
  [[nodiscard]] const std::string& program() const { return program_; }
  [[nodiscard]] const StartedAs& as() const { return as_; }

 private:
  Upgrade(std::string socket_dir, internal::BrokerProcess broker, StartedAs as)
      : socket_dir_(std::move(socket_dir)),
        broker_(std::move(broker)),
        as_(std::move(as)) {}

  [[nodiscard]] Launch NewLaunch() const;

  std::string socket_dir_;
  internal::BrokerProcess broker_;
  StartedAs as_;
  std::string program_;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_UPGRADE_UPGRADE_H_
