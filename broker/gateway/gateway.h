#ifndef GMB_BROKER_GATEWAY_GATEWAY_H_
#define GMB_BROKER_GATEWAY_GATEWAY_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "broker/doors/acceptor.h"
#include "broker/doors/admission.h"
#include "broker/doors/pending_connections.h"
#include "broker/gateway/grpc_connections.h"
#include "broker/gateway/guarded_socket.h"
#include "broker/gateway/tenant_paces.h"
#include "ipc/epoll_set.h"
#include "ipc/fd_disposer.h"
#include "ipc/wakeup.h"

namespace gmb::broker {

struct GatewayOptions {
  // How long a connection may wait, unread, for its process to greet.
  std::chrono::milliseconds greeting_timeout{5000};
  // So many wait at most; one more, and the heaviest process loses its oldest.
  size_t max_waiting = 64;
  // Connections of all processes beyond one for each session; a client that
  // connects anew needs one for a moment.
  size_t spare_connections = 32;
  TenantPaces::Options tenants = {};  // of each
  AcceptPace pace = {};               // of each door
};

// The tenants' gRPC sockets: one in each directory. A connection is handed to
// gRPC only once its process has greeted at the same directory's handle socket
// (Admission); till then not one byte of it is read. After that gRPC reads it
// through a GuardedSocket, and a client that breaks one of the bounds loses its
// connection and its sessions.
//
// One thread. AddDoor and RemoveDoor may be called from any thread.
class Gateway {
 public:
  struct Calls {
    // Makes an fd gRPC's own.
    std::function<void(int fd)> hand_over;
    // Ends a session whose process broke a bound.
    std::function<void(uint64_t session, std::string_view reason)> end_session;
  };

  // All of them must outlive it. Nobody is let in before Serve.
  static absl::StatusOr<std::unique_ptr<Gateway>> Create(
      const GatewayOptions& options, Admission* admission,
      GrpcConnections* connections, ipc::FdDisposer* disposer);
  // Hangs up on everybody.
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  // As HandleServer's AddListener and RemoveListener.
  absl::Status AddDoor(const std::string& path, mode_t mode, const Door& door);
  absl::Status RemoveDoor(const std::string& path);

  // `calls` are made on a thread of ours, hand_over until StopAccepting
  // returns.
  void Serve(Calls calls);
  // Lets nobody in any more. Connections that are in go on until the end.
  void StopAccepting();

 private:
  using Time = FrameGuard::Time;
  using Guest = std::pair<Door, PeerProcess>;
  struct Waiting {  // its bytes unread
    base::UniqueFd socket;
    Guest guest;
  };
  struct Passing {  // until gRPC has closed it
    std::shared_ptr<GuardedSocket> socket;
    Guest guest;
    std::string tenant;
    uint64_t grpc_id;        // in GrpcConnections
    bool condemned = false;  // its sessions have been ended for a broken bound
    // Since when its process has no session here.
    std::optional<Time> stranger_since = std::nullopt;
  };

  Gateway(const GatewayOptions& options, Admission* admission,
          GrpcConnections* connections, ipc::FdDisposer* disposer,
          ipc::EpollSet epoll, ipc::Wakeup news);

  void Run();
  [[nodiscard]] int WaitMilliseconds() const;
  void OnEvent(ipc::EpollTag tag, Time now);
  void OnTime(Time now);
  void LookForStrangers(Time now);
  void Report(uint64_t id);
  void OnReports(Time now);
  void TryWaitingCalls(Time now);
  void Receive(Accepted accepted, Time now);
  void LetIn(Time now);
  [[nodiscard]] bool MayPass(const Guest& guest) const;
  void Admit(uint64_t id, Waiting waiting, Time now);
  void TurnAway(uint64_t id);
  void EndSessions(const Guest& guest, const absl::Status& breach);
  void Forget(uint64_t id, Time now);

  const GatewayOptions options_;
  Admission* const admission_;
  GrpcConnections* const connections_;
  ipc::FdDisposer* const disposer_;
  const ipc::EpollSet epoll_;
  ipc::Wakeup news_;
  Acceptor acceptor_;
  Calls calls_;
  std::atomic<bool> stopping_ = false;

  // Keeps hand_over from being called after StopAccepting.
  base::Mutex accepting_mu_;
  bool accepting_ ABSL_GUARDED_BY(accepting_mu_) = false;

  // Those that pass and broke a bound, are closed, or have a call that waits.
  base::Mutex reports_mu_;
  std::vector<uint64_t> reports_ ABSL_GUARDED_BY(reports_mu_);

  // The gateway's thread alone.
  uint64_t next_id_ = 1;
  std::map<uint64_t, Waiting> waiting_;
  PendingConnections order_;  // of those that wait
  std::map<uint64_t, Passing> passing_;
  std::map<Guest, size_t> passing_of_;
  TenantPaces paces_;
  std::set<uint64_t> calls_wait_;  // of those that pass, and some more
  std::optional<Time> try_calls_at_;
  // When somebody who waits may pass.
  std::optional<Time> let_in_at_;
  std::optional<Time> next_look_;  // at those that pass

  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_GATEWAY_GATEWAY_H_
