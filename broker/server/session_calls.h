#ifndef GMB_BROKER_SERVER_SESSION_CALLS_H_
#define GMB_BROKER_SERVER_SESSION_CALLS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "broker/core/opened_session.h"
#include "broker/doors/door.h"
#include "broker/machine/peer.h"
#include "broker/server/stream_connection.h"

namespace gmb::broker {

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

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_SESSION_CALLS_H_
