#ifndef GMB_BROKER_DOORS_ACCEPTOR_H_
#define GMB_BROKER_DOORS_ACCEPTOR_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "broker/doors/door.h"
#include "broker/doors/token_bucket.h"
#include "ipc/epoll_set.h"
#include "ipc/fd_disposer.h"
#include "ipc/listener.h"

namespace gmb::broker {

// A connection that nobody knows anything about yet, but by which door it came.
struct Accepted {
  base::UniqueFd socket;
  uint64_t listener;
  Door door;
};

// How many connections each listener takes: so many at once, and over time.
struct AcceptPace {
  double at_once = 256;
  double a_second = 1000;
};

// Listening sockets in an epoll set, which take turns: a flood at one leaves
// the others their share. Each has a pace, so that a flood leaves time for the
// connections that are served already. Beyond it connections wait in the
// listener's backlog. Keeps one fd in reserve, so that with no fd left a peer
// is turned away instead of making the set ready for ever. Thread-safe. `epoll`
// and `disposer` must outlive it.
class Acceptor {
 public:
  using Time = TokenBucket::Time;

  Acceptor(const ipc::EpollSet* epoll, ipc::SocketType type,
           ipc::FdDisposer* disposer, const AcceptPace& pace);
  // Removes all paths.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // ALREADY_EXISTS when somebody listens at `path`.
  absl::Status Add(const std::string& path, mode_t mode, Door door);
  // Removes the path too. NOT_FOUND when there is none.
  absl::Status Remove(const std::string& path);

  // Takes at most kBatch connections, so that a flood leaves time for others.
  [[nodiscard]] std::vector<Accepted> Accept(uint64_t id, Time now);
  // When OnTime has something to do: a listener rests that came too fast, or
  // whose old connections cannot be closed as fast as new ones come; or all
  // do, since even the fd in reserve is lost.
  [[nodiscard]] std::optional<Time> wakes_at() const;
  void OnTime(Time now);

 private:
  static constexpr size_t kBatch = 8;
  struct Listener {
    ipc::Listener socket;
    Door door;
    TokenBucket pace;
    std::optional<Time> rests_until = std::nullopt;
  };

  [[nodiscard]] absl::Status Watch(uint64_t id, const Listener& listener) const;
  void TurnAway(Listener* listener, Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Rest(Listener* listener, Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Pause(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Resume(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Close(Listener listener) const;

  const ipc::EpollSet* const epoll_;
  const ipc::SocketType type_;
  ipc::FdDisposer* const disposer_;
  const AcceptPace pace_;
  mutable base::Mutex mu_;
  std::map<uint64_t, Listener> listeners_ ABSL_GUARDED_BY(mu_);
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  base::UniqueFd reserve_ ABSL_GUARDED_BY(mu_);
  std::optional<Time> paused_until_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DOORS_ACCEPTOR_H_
