#ifndef GMB_BROKER_SERVER_SESSION_STARTS_H_
#define GMB_BROKER_SERVER_SESSION_STARTS_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "broker/core/opened_session.h"
#include "broker/server/connection_table.h"
#include "broker/server/fds_in_flight.h"
#include "broker/server/greeting.h"
#include "broker/server/session_calls.h"
#include "broker/server/socket_sender.h"
#include "broker/server/sweep_time.h"
#include "broker/server/unread_sockets.h"

namespace gmb::broker {

// Peers that have proved who they are get their session: the core opens it, and
// the Welcome tells them of it. The handle server's thread's.
class SessionStarts {
 public:
  // All of them must outlive it.
  struct Deps {
    const SessionCalls* calls;
    std::shared_ptr<FdsInFlight> in_flight;
    std::shared_ptr<SenderNews> news;
    const ConnectionTable* connections;
    UnreadSockets* unread;
    SweepTime* sweep;
  };
  explicit SessionStarts(Deps deps) : deps_(std::move(deps)) {}

  // An error is what to refuse the peer with; where the connection has an outbox
  // by then, its session has to be closed.
  [[nodiscard]] absl::Status Start(uint64_t id, HandleConnection* connection,
                                   const ProvedHello& hello);
  // Has the session's outbox send its frames on the connection.
  void Attach(uint64_t id, HandleConnection* connection) const;

 private:
  [[nodiscard]] absl::StatusOr<OpenedSession> Open(
      const HandleConnection& connection, const ProvedHello& hello) const;
  [[nodiscard]] absl::Status Welcome(HandleConnection* connection,
                                     const OpenedSession& opened);
  // For so many more unread fds. False: its tenant has left too much unread.
  [[nodiscard]] bool TakeRoom(HandleConnection* connection, uint64_t fds) const;

  const Deps deps_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_SESSION_STARTS_H_
