#ifndef GMB_BROKER_SERVER_HANDLE_SERVER_H_
#define GMB_BROKER_SERVER_HANDLE_SERVER_H_

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "broker/core/opened_session.h"
#include "broker/doors/acceptor.h"
#include "broker/doors/door.h"
#include "broker/doors/pending_connections.h"
#include "broker/machine/origin.h"
#include "broker/machine/peer.h"
#include "broker/server/fds_in_flight.h"
#include "broker/server/greeting.h"
#include "broker/server/socket_sender.h"
#include "broker/server/stream_connection.h"
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

// A peer that has a session, and connected once more for its stream.
struct StreamPeer {
  Door door;
  pid_t pid = 0;
  std::shared_ptr<const base::UniqueFd> pidfd;  // null: it has none
  std::string token;                            // not judged yet
};

// The handle server's questions to the core. Called on the server's thread.
struct SessionCalls {
  std::function<absl::StatusOr<OpenedSession>(const PeerIdentity&)> open;
  // Exactly once for each session opened; the core may have ended it already.
  std::function<void(uint64_t session, std::string_view reason)> close;
  // May be null: then each does. Whether the session has leases, so that it
  // matters when its process gives their memory back.
  std::function<bool(uint64_t session)> has_leases = nullptr;
  // May be null. After `open`, and before the peer learns of its session, of
  // tenants' sessions alone: what a successor needs to go on with it. The fds
  // stay the server's, and are valid during the call; `gate_page` is -1 where
  // the session has none.
  std::function<void(uint64_t session, int socket,
                     const std::shared_ptr<const base::UniqueFd>& pidfd,
                     int gate_page)>
      keep = nullptr;
  // May be null. The peer was sent its Welcome, of tenants' sessions alone.
  std::function<void(uint64_t session)> welcomed = nullptr;
  // May be null: then no connection is a stream. Takes the connection, or says
  // why not.
  std::function<absl::Status(const StreamPeer&, StreamConnection)> open_stream =
      nullptr;
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
  struct Connection;

  HandleServer(const HandleServerOptions& options, SessionCalls calls,
               ipc::FdDisposer* disposer, ipc::EpollSet epoll,
               std::shared_ptr<SenderNews> news);

  static Time After(absl::Duration duration) {
    return std::chrono::steady_clock::now() +
           absl::ToChronoNanoseconds(duration);
  }

  // The loop: handle_server.cc.
  void Run();
  [[nodiscard]] int WaitMilliseconds() const;
  void OnEvent(ipc::EpollTag tag, uint32_t events);
  void OnTime(Time now);
  void OnNews();
  void Sweep(Time now);
  // True: some peers have not read all fds that they were sent.
  bool ForgetWhatWasRead();
  // That costs a look at every peer, so not for each that greets.
  [[nodiscard]] bool MayLookAgain(Time now) const;
  [[nodiscard]] absl::Duration SweepInterval() const {
    return std::min(absl::Seconds(1), options_.peer_timeout / 4);
  }

  // One peer: handle_connection.cc, or handle_adoption.cc for one that was
  // kept; its end: handle_endings.cc.
  void OnListener(uint64_t listener);
  void TakeAdopted() ABSL_LOCKS_EXCLUDED(adopted_mu_);
  [[nodiscard]] absl::Status Watch(uint64_t id,
                                   const Connection& connection) const;
  void Challenge(Accepted accepted);
  [[nodiscard]] absl::Status SendChallenge(uint64_t id, Connection* connection);
  void OnSocket(uint64_t id, uint32_t events);
  // False: the connection is gone.
  [[nodiscard]] bool Receive(uint64_t id, Connection* connection);
  void OnFirstPacket(uint64_t id, Connection* connection,
                     const ipc::Packet& packet);
  void OnHello(uint64_t id, Connection* connection, const ProvedHello& hello);
  void OnAskedStream(uint64_t id, const AskedStream& asked);
  [[nodiscard]] absl::Status Welcome(Connection* connection,
                                     const OpenedSession& opened);
  void OnRoom(uint64_t id, Connection* connection);
  void WaitForRoom(uint64_t id);

  void OnHangup(uint64_t id, Connection* connection);
  void OnDeath(uint64_t id);

  // Both destroy the connection.
  void Refuse(uint64_t id, const absl::Status& why);
  void End(uint64_t id, std::string_view reason);
  // Its two steps. Part's null: there is no such connection.
  [[nodiscard]] std::unique_ptr<Connection> Part(uint64_t id,
                                                 std::string_view reason);
  void HangUp(const Connection& connection);

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
  std::vector<std::unique_ptr<Connection>> adopted_
      ABSL_GUARDED_BY(adopted_mu_);

  // The server's thread alone.
  std::map<uint64_t, std::unique_ptr<Connection>> connections_;
  uint64_t next_connection_ = 1;
  std::map<uint64_t, Time> dying_;  // hung up; waiting for their pidfds until
  PendingConnections pending_;
  // Ended, and their peers still have a socket with unread fds: those stay in
  // flight, and in the tenant's account.
  std::vector<std::pair<std::shared_ptr<ipc::SeqpacketSocket>,
                        std::shared_ptr<UnreadFds>>>
      left_unread_;
  Time looked_for_read_{};  // ForgetWhatWasRead
  // Set while some peer may owe an acknowledgement, or left fds unread.
  std::optional<Time> next_sweep_;

  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_HANDLE_SERVER_H_
