#ifndef GMB_BROKER_GATEWAY_GUARDED_SOCKET_H_
#define GMB_BROKER_GATEWAY_GUARDED_SOCKET_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "broker/gateway/call_pace.h"
#include "broker/gateway/frame_guard.h"
#include "ipc/fd_disposer.h"

namespace gmb::broker {

// A tenant's connection that gRPC serves. gRPC's own reads, writes and the
// close of it come here (grpc_system_calls.h): a FrameGuard judges the client's
// bytes before gRPC sees them, fds that the client sends are never received,
// and the socket is closed where nobody waits for it.
//
// While more than kMostUnread bytes of answers wait for a client that does not
// read, nothing more is read from it, so that gRPC has nothing more to answer.
// While its tenant opens calls faster than it may, the next call stays unread
// until it is this connection's turn.
//
// Thread-safe.
class GuardedSocket {
 public:
  static constexpr size_t kMostRead = size_t{16} * 1024;  // at once
  static constexpr size_t kMostUnread = size_t{64} * 1024;

  // `fd` is a connected Unix stream that does not block, and becomes gRPC's.
  // `calls` is its tenant's. `door` is the disposer's name of where it came
  // from. `on_news` is called once the client broke a bound, once gRPC has
  // closed the socket, and each time a call begins to wait, on gRPC's threads,
  // with a lock held: it must not call back.
  GuardedSocket(int fd, std::shared_ptr<CallPace> calls,
                ipc::FdDisposer* disposer, std::string door,
                std::function<void()> on_news);
  GuardedSocket(const GuardedSocket&) = delete;
  GuardedSocket& operator=(const GuardedSocket&) = delete;

  // As the system calls of the same names; errno says why they fail. To gRPC a
  // broken bound looks like a reset connection.
  ssize_t Receive(msghdr* message, int flags);
  ssize_t Send(const msghdr* message, int flags);
  void Close();

  // Makes gRPC try to read a call that waits, by an edge of epoll, if it is its
  // turn. False: none waits.
  bool TryAgain();
  // Ends the connection; gRPC closes the socket then.
  void HangUp();
  // From now on on_news is not called, and the disposer not used.
  void Leave();

  // Not OK: the bound that the client broke.
  [[nodiscard]] absl::Status breach() const;
  [[nodiscard]] bool closed() const;
  // FrameGuard's.
  [[nodiscard]] double CallsOfBurst(FrameGuard::Time now) const;

 private:
  // Whether something stands against a read now: a hang-up, or answers that
  // nobody reads.
  enum class Readiness { kRead, kNotNow, kOver };
  [[nodiscard]] Readiness MayRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How much of what is there may be read now, of `most` bytes. As recvmsg: 0
  // where the client has hung up, -1 where errno says why nothing may.
  [[nodiscard]] ssize_t LookAhead(const msghdr& message, size_t most, int flags,
                                  bool calls_wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reads at most so many bytes, and judges them.
  [[nodiscard]] ssize_t Take(msghdr* message, size_t most, int flags)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StopWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Judge(const msghdr& message, size_t received)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Break(absl::Status breach) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int fd_;
  const std::shared_ptr<CallPace> calls_;
  const std::string door_;
  const bool client_sends_no_fds_;  // because the kernel refuses them

  mutable base::Mutex mu_;
  FrameGuard guard_ ABSL_GUARDED_BY(mu_);
  ipc::FdDisposer* disposer_ ABSL_GUARDED_BY(mu_);
  std::function<void()> on_news_ ABSL_GUARDED_BY(mu_);
  absl::Status breach_ ABSL_GUARDED_BY(mu_);
  bool read_since_look_ ABSL_GUARDED_BY(mu_) = false;
  bool call_waits_ ABSL_GUARDED_BY(mu_) = false;  // in line, in calls_
  bool hung_up_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_GATEWAY_GUARDED_SOCKET_H_
