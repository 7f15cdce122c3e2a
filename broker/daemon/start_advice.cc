// The broker's start: what to do when it fails for want of rights or files.
#include "broker/daemon/start_advice.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gmb::broker {
namespace {

// As absl::ErrnoToStatus ends its messages.
bool Says(const absl::Status& why, int error) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the main thread's, at its end
  return absl::EndsWith(why.message(), std::strerror(error));
}

}  // namespace

std::string WithAdvice(const absl::Status& why) {
  if (Says(why, EMFILE)) {
    return absl::StrCat(
        why.message(),
        ": gmbd needs more open files than it may have: raise their limit "
        "(systemd: LimitNOFILE=, shell: ulimit -n, container: --ulimit "
        "nofile=)");
  }
  if (Says(why, ENFILE)) {
    return absl::StrCat(
        why.message(),
        ": this machine has no open files left (fs.file-max): raise that, or "
        "end what holds them");
  }
  if (Says(why, EACCES) || Says(why, EPERM)) {
    return absl::StrCat(
        why.message(),
        ": run gmbd as a user who may do that, such as the owner of the "
        "directory or root, or give it directories of its own with "
        "--socket-dir and --state-dir; `gmbd --check` looks at all of them");
  }
  if (Says(why, EROFS)) {
    return absl::StrCat(why.message(),
                        ": name directories that can be written with "
                        "--socket-dir and --state-dir");
  }
  return std::string(why.message());
}

}  // namespace gmb::broker
