#ifndef GMB_IPC_LISTENER_H_
#define GMB_IPC_LISTENER_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::ipc {

enum class SocketType { kSeqpacket, kStream };

// A listening Unix socket at a filesystem path. Move-only. When destroyed it
// removes its path, unless something else lies there by then. Its peers send no
// fds where the kernel can refuse them (foreign_fds.h).
class Listener {
 public:
  // `mode` is the socket file's permission, e.g. 0660: a peer needs write
  // permission to connect. A stale socket at `path` (nobody listens) is
  // replaced; ALREADY_EXISTS if somebody listens there or it is not a socket.
  // Symbolic links are not followed, also where a stranger owns the directory
  // and swaps what lies there.
  static absl::StatusOr<Listener> Listen(const std::string& path, mode_t mode,
                                         SocketType type);

  // A duplicate of another process's, which may be given away: until Claim its
  // path is the other's, and stays.
  static Listener Borrow(base::UniqueFd fd, std::string path);
  // It is this process's now: those who connect from here on see its
  // credentials. FAILED_PRECONDITION: no socket lies at its path any more.
  [[nodiscard]] absl::Status Claim();

  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  // A connection, non-blocking and close-on-exec. nullopt: nobody waits now.
  // RESOURCE_EXHAUSTED: this process or the system
  // has no fds or memory left; the connection stays in the backlog.
  [[nodiscard]] absl::StatusOr<std::optional<base::UniqueFd>> TryAccept();

  // Removes the path and ends listening. The fd is the caller's: to close it
  // drops what waits in the backlog, fds of strangers among it.
  [[nodiscard]] base::UniqueFd Close() &&;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Listener(base::UniqueFd fd, std::string path, dev_t device, ino_t inode);
  void RemovePath();

  base::UniqueFd fd_;
  std::string path_;
  dev_t device_;  // with inode_: the socket file that is ours
  ino_t inode_;
};

}  // namespace gmb::ipc

#endif  // GMB_IPC_LISTENER_H_
