#ifndef GMB_IPC_FD_DISPOSER_H_
#define GMB_IPC_FD_DISPOSER_H_

#include <chrono>
#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "base/unique_fd.h"

namespace gmb::ipc {

// Closes the sockets of untrusted peers where nobody waits. To close one drops
// what lies unread in it, fds of the peer's choice among it (foreign_fds.h),
// and that can take as long as the peer likes. A thread closes one after
// another. A timer interrupts it while a close lasts, which ends the wait of a
// lingering TCP socket. A close that no signal ends (of a file whose FUSE
// server does not write the changes in it) costs that thread until the server
// answers or dies.
//
// The thread that closes a socket is not always that which drops what lies in
// it: a thread whose epoll set has the socket may have the kernel's last
// reference for a moment. So take it out of such a set first. Where that cannot
// be done, as with gRPC's, shut the stream down: what lies unread in a stream
// that is over is taken out before the close.
//
// Sockets of one door (any name) are closed one at a time, and doors take
// turns. So a door costs one thread at the most, and what comes by it waits for
// its own alone. Another thread goes on with the others, up to kMostThreads.
//
// Installs a handler for one real-time signal in the process (SIGRTMIN + 3) and
// sends it to its own threads alone. Thread-safe.
class FdDisposer {
 public:
  static constexpr size_t kMostThreads = 64;
  // So many of a door wait only if somebody there sends what is slow to close:
  // accept no more by it until there are fewer.
  static constexpr size_t kCrowded = 64;

  // INTERNAL: the kernel gives no thread or timer.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<FdDisposer>> Start();
  // Waits for closes under way for at most a second. Sockets that are left stay
  // open: the end of the process closes them, and does not linger.
  ~FdDisposer();
  FdDisposer(const FdDisposer&) = delete;
  FdDisposer& operator=(const FdDisposer&) = delete;

  // Closes it soon. Never blocks.
  void Dispose(base::UniqueFd fd, absl::string_view door = {});

  // Ask before each accept: it looks after threads that are lost, too.
  [[nodiscard]] bool IsCrowded(absl::string_view door);
  // Given to Dispose and not closed yet.
  [[nodiscard]] size_t waiting() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Shared;

  explicit FdDisposer(std::shared_ptr<Shared> shared);
  static bool StartThread(const std::shared_ptr<Shared>& shared);
  void ReplaceStuck();

  // Outlives the disposer in threads whose close does not end.
  const std::shared_ptr<Shared> shared_;
};

}  // namespace gmb::ipc

#endif  // GMB_IPC_FD_DISPOSER_H_
