#ifndef GMB_CLIENT_CLI_UPGRADE_SUCCESSOR_H_
#define GMB_CLIENT_CLI_UPGRADE_SUCCESSOR_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/upgrade/started_as.h"

namespace gmb::cli {

// The starter of brokers: this command, or systemd. `as` outlives it.
class Successor {
 public:
  virtual ~Successor() = default;

  // While the old broker lives: whatever is needed to start it again.
  virtual absl::Status Save() = 0;
  virtual absl::Status StartNew() = 0;
  // The one that was started is ended first.
  virtual absl::Status StartOld() = 0;
  // How the one that was started has ended, where that is known.
  virtual std::optional<std::string> AwaitEnd(absl::Duration wait) = 0;
  // Its process, where that is known; or 0.
  [[nodiscard]] virtual pid_t pid() const = 0;
  // The new one serves: what was saved is not needed any more.
  virtual void Forget() = 0;
};

// Started by this command as the old one was.
std::unique_ptr<Successor> ByProcess(const StartedAs& as, const Launch& launch);
// Started by systemd. Its program has been replaced already, or not at all.
std::unique_ptr<Successor> ByUnit(const StartedAs& as);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_UPGRADE_SUCCESSOR_H_
