#ifndef GMB_BROKER_DAEMON_THREADS_OR_ERROR_H_
#define GMB_BROKER_DAEMON_THREADS_OR_ERROR_H_

#include <system_error>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gmb::broker {

// A step of the start that starts threads. Where the system gives none the
// standard library throws: here that is an error like another.
inline absl::Status ThreadsOrError(absl::FunctionRef<absl::Status()> step) {
  try {
    return step();
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "gmbd is given no thread: raise the limit on them (systemd: TasksMax=, "
        "shell: ulimit -u, container: --pids-limit, Kubernetes: "
        "podPidsLimit): ",
        error.what()));
  }
}

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_THREADS_OR_ERROR_H_
