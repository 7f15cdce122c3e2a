// The start of a process that holds many fds for others.
#include "ipc/open_files.h"

#include <sys/resource.h>

#include <cerrno>

#include "absl/status/status.h"

namespace gmb::ipc {

absl::StatusOr<uint64_t> RaiseFdLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return absl::ErrnoToStatus(errno, "cannot read the limit on open files");
  }
  if (limit.rlim_cur < limit.rlim_max) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_max;
    // A refusal leaves the limit as it was, which is an answer too.
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur;
}

}  // namespace gmb::ipc
