#ifndef GMB_BROKER_DOORS_ACCEPTOR_H_
#define GMB_BROKER_DOORS_ACCEPTOR_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "broker/core/origin.h"
#include "broker/doors/epoll_set.h"
#include "ipc/fd_disposer.h"
#include "ipc/listener.h"
#include "ipc/mutex.h"
#include "ipc/unique_fd.h"

namespace gmb::broker {

// A connection that nobody knows anything about yet, but by which door it came.
struct Accepted {
  ipc::UniqueFd socket;
  uint64_t listener;
  Origin origin;
  std::string tenant_directory;
};

// Listening sockets in an epoll set, which take turns: a flood at one leaves
// the others their share. Keeps one fd in reserve, so that with no fd left a
// peer is turned away instead of making the set ready for ever. Thread-safe.
// `epoll` and `disposer` must outlive it.
class Acceptor {
 public:
  Acceptor(const EpollSet* epoll, ipc::SocketType type,
           ipc::FdDisposer* disposer);
  // Removes all paths.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // ALREADY_EXISTS when somebody listens at `path`.
  absl::Status Add(const std::string& path, mode_t mode, Origin origin,
                   std::string_view tenant);
  // Removes the path too. NOT_FOUND when there is none.
  absl::Status Remove(const std::string& path);

  // Takes at most kBatch connections, so that a flood leaves time for others.
  [[nodiscard]] std::vector<Accepted> Accept(uint64_t id);
  // True when even the fd in reserve is lost, or connections come faster than
  // old ones can be closed: no listener is in the epoll set until Resume.
  [[nodiscard]] bool paused() const;
  void Resume();

 private:
  static constexpr size_t kBatch = 8;
  struct Listener {
    ipc::Listener socket;
    Origin origin;
    std::string tenant;
  };

  [[nodiscard]] absl::Status Watch(uint64_t id, const Listener& listener) const;
  void TurnAway(Listener* listener) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Pause() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Close(Listener listener) const;

  const EpollSet* const epoll_;
  const ipc::SocketType type_;
  ipc::FdDisposer* const disposer_;
  mutable ipc::Mutex mu_;
  std::map<uint64_t, Listener> listeners_ ABSL_GUARDED_BY(mu_);
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  ipc::UniqueFd reserve_ ABSL_GUARDED_BY(mu_);
  bool paused_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DOORS_ACCEPTOR_H_
