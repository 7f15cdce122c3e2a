#ifndef GMB_CLIENT_CLI_DEMO_SWEEPER_H_
#define GMB_CLIENT_CLI_DEMO_SWEEPER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::cli {

// A process that removes a directory when this one, and all that were started
// after it, have ended without doing so: SIGKILL leaves nobody else to. It ends
// with the object, and then removes nothing.
class Sweeper {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Sweeper>> Start(
      const std::string& dir);
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;
  ~Sweeper();

 private:
  Sweeper(pid_t pid, base::UniqueFd alive)
      : pid_(pid), alive_(std::move(alive)) {}

  const pid_t pid_;
  // Inherited by every process that is started, so that the other end of the
  // pipe hangs up with the last of them.
  const base::UniqueFd alive_;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_SWEEPER_H_
