#ifndef GMB_IPC_PIDFD_H_
#define GMB_IPC_PIDFD_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::ipc {

// A pidfd of the process that connected `socket_fd`; `pid` is what SO_PEERCRED
// says. Uses SO_PEERPIDFD where the kernel has it (6.5). Elsewhere it opens the
// pid, which another process may have by then: the caller must see credentials
// with the same pid arrive on the socket while the pidfd is alive, and only
// then trust it. UNAVAILABLE: the process has died. NOT_FOUND: the process is
// not visible from our pid namespace and the kernel offers no other way.
absl::StatusOr<base::UniqueFd> OpenPeerPidfd(int socket_fd, pid_t pid);

// False once the process has died, even before it is reaped. Becomes readable
// for poll at that moment.
[[nodiscard]] bool IsAlive(const base::UniqueFd& pidfd);

// Whether an fd of unknown origin is a pidfd. Asks no file's server, so that it
// does not block; needs /proc.
[[nodiscard]] bool IsPidfd(int fd);

// A number that no other process of this boot has, live or dead: the pidfd's
// inode (Linux 6.9). nullopt: this kernel has none.
[[nodiscard]] std::optional<uint64_t> ProcessNumber(
    const base::UniqueFd& pidfd);

// Sends SIGKILL. PERMISSION_DENIED without the right to; UNAVAILABLE when it
// has died already. Never blocks.
absl::Status Kill(const base::UniqueFd& pidfd);

}  // namespace gmb::ipc

#endif  // GMB_IPC_PIDFD_H_
