#ifndef GMB_BASE_REGULAR_FILE_H_
#define GMB_BASE_REGULAR_FILE_H_

#include <sys/stat.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gmb::base {

// The system's answer about an open file, which must be a regular one. `what` and
// `path` name it in the message: "the lock file", "/run/gmb/gmbd.lock".
[[nodiscard]] inline absl::StatusOr<struct stat> LookAtRegularFile(
    int fd, absl::string_view what, absl::string_view path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot look at ", what, " ", path));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, " is not a regular file: remove it, or name another: ", path));
  }
  return info;
}

}  // namespace gmb::base

#endif  // GMB_BASE_REGULAR_FILE_H_
