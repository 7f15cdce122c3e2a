#ifndef GMB_BROKER_GATEWAY_GRPC_CONNECTIONS_H_
#define GMB_BROKER_GATEWAY_GRPC_CONNECTIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "broker/doors/acceptor.h"
#include "broker/doors/pending_connections.h"
#include "ipc/epoll_set.h"
#include "ipc/fd_disposer.h"
#include "ipc/wakeup.h"

namespace gmb::broker {

// The connections that gRPC serves, and whose they are. Those of operators are
// accepted here; tenants' come through the Gateway, which has them adopted.
//
// gRPC's own listener accepts from anybody without an end, and stops for good
// at the first accept for which no fd is left; so we accept, with a limit, and
// hand connections to gRPC one by one.
//
// A connection is proved while a call with a session's token is open on it. Of
// the operators' others there are at most so many: one more, and one has to go,
// of the process that has the most. A connection that has to go is shut down,
// and gRPC closes it.
//
// Costs one thread, and one fd an operator's connection beside gRPC's own: a
// duplicate, by which we see it end and can end it.
class GrpcConnections {
 public:
  static constexpr size_t kMaxUnproved = 64;

  // Listens at `path`, the operators' socket, with nobody let in yet; removes
  // it when destroyed. ALREADY_EXISTS: somebody listens there. `disposer` must
  // outlive it.
  static absl::StatusOr<std::unique_ptr<GrpcConnections>> Listen(
      const std::string& path, mode_t mode, ipc::FdDisposer* disposer,
      size_t max_unproved = kMaxUnproved);
  // Stops serving.
  ~GrpcConnections();
  GrpcConnections(const GrpcConnections&) = delete;
  GrpcConnections& operator=(const GrpcConnections&) = delete;

  // Lets peers in from now on. `hand_over` makes an fd gRPC's own; it is called
  // on a thread of ours until StopServing returns.
  void Serve(std::function<void(int fd)> hand_over);
  void StopServing();

  // An open call that has proved whose it is, while it lives. Movable.
  class Proof {
   public:
    Proof() = default;
    Proof(Proof&& other) noexcept;
    Proof& operator=(Proof&& other) noexcept;
    ~Proof();

    // The process that connected; 0: in a pid namespace we cannot see, or the
    // connection has ended.
    [[nodiscard]] pid_t pid() const { return pid_; }

   private:
    friend class GrpcConnections;
    Proof(GrpcConnections* owner, uint64_t id, pid_t pid)
        : owner_(owner), id_(id), pid_(pid) {}

    GrpcConnections* owner_ = nullptr;
    uint64_t id_ = 0;
    pid_t pid_ = 0;
  };
  // `grpc_peer` is what gRPC calls the connection (ServerContext::peer()).
  // Must outlive its proofs. Any thread.
  [[nodiscard]] Proof Prove(absl::string_view grpc_peer);

  // Takes note of a connection that somebody else hands to gRPC as `grpc_fd`,
  // made by process `pid`. Call it before gRPC has the fd, and Forget when the
  // connection has ended. `hang_up` ends it; it is called with a lock held and
  // must not call back.
  [[nodiscard]] uint64_t Adopt(int grpc_fd, pid_t pid,
                               std::function<void()> hang_up);
  void Forget(uint64_t id);

  // Ends every connection, adopted ones too: gRPC closes them, and no longer
  // waits for peers that do not read. Any thread.
  void HangUp();

  // Not ended yet, as far as we have seen.
  [[nodiscard]] size_t open() const;

 private:
  struct Connection {
    base::UniqueFd watch;  // a duplicate of gRPC's fd; none of an adopted one
    std::function<void()> hang_up;  // of an adopted one
    int grpc_fd = -1;  // gRPC's, which names the connection while it is open
    pid_t pid = 0;
    uint64_t proofs = 0;
  };

  GrpcConnections(ipc::EpollSet epoll, ipc::Wakeup stop,
                  ipc::FdDisposer* disposer, size_t max_unproved);

  void Run();
  void Admit(Accepted accepted);
  // The fd to hand over, once the connection is in the books. Invalid: there is
  // no fd left to watch it with.
  base::UniqueFd Register(Accepted accepted) ABSL_LOCKS_EXCLUDED(mu_);
  void AddUnproved(uint64_t id, const Connection& connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Unprove(uint64_t id);

  ipc::FdDisposer* const disposer_;
  const std::string door_ = NameOf({.origin = Origin::kAdmin});
  const ipc::EpollSet epoll_;
  ipc::Wakeup stop_;
  Acceptor acceptor_;
  std::function<void(int)> hand_over_;
  std::thread thread_;

  mutable base::Mutex mu_;
  std::map<uint64_t, Connection> connections_ ABSL_GUARDED_BY(mu_);
  std::map<int, uint64_t> by_grpc_fd_ ABSL_GUARDED_BY(mu_);
  PendingConnections unproved_ ABSL_GUARDED_BY(mu_);
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  bool serving_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_GATEWAY_GRPC_CONNECTIONS_H_
