#ifndef GMB_IPC_FD_DISPOSER_H_
#define GMB_IPC_FD_DISPOSER_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "ipc/mutex.h"
#include "ipc/unique_fd.h"

namespace gmb::ipc {

// Closes the sockets of untrusted peers where nobody waits. To close one drops
// all that lies unread in it, fds of the peer's choice among it
// (foreign_fds.h). That can take as long as the peer likes. A thread closes one
// after another. A timer interrupts it while a close lasts, which ends the wait
// of a lingering TCP socket. A close that no signal ends (of a FUSE server's
// file, when the server does not answer) costs that thread, and another one
// goes on, up to kMostThreads.
//
// Installs a handler for one real-time signal in the process (SIGRTMIN + 3) and
// sends it to its own threads alone. Thread-safe.
class FdDisposer {
 public:
  static constexpr size_t kMostThreads = 8;
  // So many wait only if somebody sends what is slow to close: accept no more
  // of untrusted peers until there are fewer.
  static constexpr size_t kCrowded = 256;

  // INTERNAL: the kernel gives no thread or timer.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<FdDisposer>> Start();
  // Waits for closes under way for at most a second. Sockets that are left stay
  // open: the end of the process closes them, and does not linger.
  ~FdDisposer();
  FdDisposer(const FdDisposer&) = delete;
  FdDisposer& operator=(const FdDisposer&) = delete;

  // Closes it soon. Never blocks.
  void Dispose(UniqueFd fd);

  [[nodiscard]] bool crowded() const { return waiting_ > kCrowded; }
  // Given to Dispose and not closed yet.
  [[nodiscard]] size_t waiting() const { return waiting_; }

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Shared;

  explicit FdDisposer(std::shared_ptr<Shared> shared);
  static bool StartThread(const std::shared_ptr<Shared>& shared);

  // Outlives the disposer in threads whose close does not end.
  const std::shared_ptr<Shared> shared_;
  std::atomic<size_t>& waiting_;
};

}  // namespace gmb::ipc

#endif  // GMB_IPC_FD_DISPOSER_H_
