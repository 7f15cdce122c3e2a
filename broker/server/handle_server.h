#ifndef GMB_BROKER_SERVER_HANDLE_SERVER_H_
#define GMB_BROKER_SERVER_HANDLE_SERVER_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "broker/core/opened_session.h"
#include "broker/doors/acceptor.h"
#include "broker/doors/pending_connections.h"
#include "broker/machine/origin.h"
#include "broker/server/connection_table.h"
#include "broker/server/fds_in_flight.h"
#include "broker/server/greeting.h"
#include "broker/server/handle_connection.h"
#include "broker/server/session_calls.h"
#include "broker/server/session_starts.h"
#include "broker/server/socket_sender.h"
#include "broker/server/sweep_time.h"
#include "broker/server/unread_sockets.h"
#include "ipc/epoll_set.h"
#include "ipc/fd_disposer.h"
#include "ipc/seqpacket.h"

namespace gmb::broker {

struct HandleServerOptions {
  absl::Duration greeting_timeout = absl::Seconds(5);
  // For the acknowledgement of a frame, the time that it waits for room
  // included.
  absl::Duration peer_timeout = absl::Seconds(10);
  size_t max_pending_greetings = 128;
  AcceptPace pace = {};
  // How many fds may lie unread in the peers' sockets.
  uint64_t fds_in_flight = FdsInFlight::MostOfThisProcess();
};

// The connection of a session that the broker before this one had welcomed.
struct KeptConnection {
  base::UniqueFd socket;
  std::shared_ptr<const base::UniqueFd> pidfd;  // null: it has none
  Origin origin = Origin::kShared;
  std::string tenant_directory = {};
  // As this broker's core has it now. Its peer is told nothing, and is sent no
  // gate page: it has one.
  OpenedSession opened;
};

// Why a session ended, for operators. A client that is done and one that was
// killed look alike.
inline constexpr char kDisconnected[] = "it disconnected";
inline constexpr char kProcessEnded[] =
    "its process ended; another one keeps its connection open";

// All handle sockets: greetings, slab frames and their acknowledgements, and
// the death of peers. A connection that is to be a session's stream is given
// away (SessionCalls::open_stream). One thread waits on all of it and never
// blocks on a peer; a peer that misbehaves loses its own session.
//
// Listeners may be added and removed from any thread at any time.
class HandleServer {
 public:
  // `disposer` must outlive the server and every outbox of its sessions.
  static absl::StatusOr<std::unique_ptr<HandleServer>> Start(
      const HandleServerOptions& options, SessionCalls calls,
      ipc::FdDisposer* disposer);
  // Ends every session and removes the sockets.
  ~HandleServer();
  HandleServer(const HandleServer&) = delete;
  HandleServer& operator=(const HandleServer&) = delete;

  // Goes on with a session where the last broker left off: what its peer has
  // sent meanwhile is read, and one that has died meanwhile ends at once. From
  // here on its end is told by SessionCalls::close. An error, of which close
  // hears nothing: it is no connection of that kind.
  absl::Status Adopt(KeptConnection kept) ABSL_LOCKS_EXCLUDED(adopted_mu_);

  // `mode`: the socket file's permission. `tenant`: the one whose directory
  // `path` is in, with Origin::kTenantDirectory. ALREADY_EXISTS: somebody
  // listens there.
  absl::Status AddListener(const std::string& path, mode_t mode, Origin origin,
                           std::string_view tenant = {});
  // Closes the socket and removes its path; sessions that came by it go on.
  // NOT_FOUND when there is none.
  absl::Status RemoveListener(const std::string& path);

 private:
  using Time = PendingConnections::Time;

  HandleServer(const HandleServerOptions& options, SessionCalls calls,
               ipc::FdDisposer* disposer, ipc::EpollSet epoll,
               std::shared_ptr<SenderNews> news);

  // The loop: handle_server.cc.
  void Run();
  [[nodiscard]] int WaitMilliseconds() const;
  void OnEvent(ipc::EpollTag tag, uint32_t events);
  void OnTime(Time now);
  void OnNews();
  void Sweep(Time now);

  // One peer: handle_peers.cc, or handle_adoption.cc for one that was kept; its
  // end: handle_endings.cc.
  void OnListener(uint64_t listener);
  void TakeAdopted() ABSL_LOCKS_EXCLUDED(adopted_mu_);
  void Challenge(Accepted accepted);
  void OnSocket(uint64_t id, uint32_t events);
  // False: the connection is gone.
  [[nodiscard]] bool Receive(uint64_t id, HandleConnection* connection);
  void OnFirstPacket(uint64_t id, HandleConnection* connection,
                     const ipc::Packet& packet);
  void OnAskedStream(uint64_t id, const AskedStream& asked);
  // False: the connection is gone.
  bool WatchRoom(uint64_t id, bool room);

  void OnHangup(uint64_t id, HandleConnection* connection);
  void OnDeath(uint64_t id);

  // Both destroy the connection.
  void Refuse(uint64_t id, const absl::Status& why);
  void End(uint64_t id, std::string_view reason);
  // Its two steps. Part's null: there is no such connection.
  [[nodiscard]] std::unique_ptr<HandleConnection> Part(uint64_t id,
                                                       std::string_view reason);
  void HangUp(const HandleConnection& connection);

  const HandleServerOptions options_;
  const SessionCalls calls_;
  ipc::FdDisposer* const disposer_;
  const ipc::EpollSet epoll_;
  const std::shared_ptr<SenderNews> news_;
  const std::shared_ptr<FdsInFlight> in_flight_;
  Acceptor acceptor_;
  std::atomic<bool> stopping_ = false;

  base::Mutex adopted_mu_;
  // For the server's thread.
  std::vector<std::unique_ptr<HandleConnection>> adopted_
      ABSL_GUARDED_BY(adopted_mu_);

  // The server's thread alone.
  ConnectionTable connections_;
  PendingConnections pending_;
  UnreadSockets unread_;
  SweepTime sweep_;
  SessionStarts starts_;

  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_HANDLE_SERVER_H_
