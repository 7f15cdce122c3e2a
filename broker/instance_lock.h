#ifndef GMB_BROKER_INSTANCE_LOCK_H_
#define GMB_BROKER_INSTANCE_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::broker {

// One broker a directory: an flock on DIR/gmbd.lock, held for the process's
// life. The kernel lets go of it when the process dies, however it dies, so a
// lock file that is left over means nothing. It is never removed: a file that
// can vanish can be locked twice. It is for the broker's user alone (0600), since
// a process that can open it can hold the lock.
class InstanceLock {
 public:
  // The directory must exist. ALREADY_EXISTS when another broker holds it; the
  // message names its pid, its command line and since when. One that was
  // killed just now is waited for, 10 s at most: the kernel takes a second for
  // much memory. A living one costs half a second. A disk without room for the
  // holder's pid is a warning in the log.
  static absl::StatusOr<InstanceLock> Acquire(const std::string& directory);

  // Whether Acquire would succeed where the lock file is there; it stays as it
  // is. PERMISSION_DENIED: it is another user's, and Acquire would fail, too.
  static absl::Status Probe(const std::string& directory);

  InstanceLock(InstanceLock&&) = default;
  InstanceLock& operator=(InstanceLock&&) = default;

 private:
  explicit InstanceLock(base::UniqueFd fd) : fd_(std::move(fd)) {}

  base::UniqueFd fd_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_INSTANCE_LOCK_H_
