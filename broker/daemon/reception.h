#ifndef GMB_BROKER_DAEMON_RECEPTION_H_
#define GMB_BROKER_DAEMON_RECEPTION_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/core/clock.h"
#include "broker/core/core.h"
#include "broker/core/event_bus.h"
#include "broker/daemon/keeping.h"
#include "broker/daemon/refusal_log.h"
#include "broker/doors/admission.h"
#include "broker/machine/peer.h"
#include "broker/metrics/event_counts.h"
#include "broker/server/handle_server.h"
#include "broker/server/stream_server.h"

namespace gmb::broker {

// Receives the peers that come to the handle sockets: opens their sessions and
// their streams, has the keeper keep them, and lets their gRPC connections in.
// A peer that is refused leaves a trace.
class Reception {
 public:
  // All of them outlive the handle server.
  struct Deps {
    Core* core;
    Keeping* keeping;  // null: all ends with the broker
    EventBus* events;
    metrics::EventCounts* counts;
    const Clock* clock;
  };
  explicit Reception(const Deps& deps) : deps_(deps), refusals_(deps.events) {}

  // For the handle server, which the reception outlives.
  [[nodiscard]] SessionCalls Calls();
  // Before that meets anybody.
  void SetStreams(StreamServer* streams) { streams_ = streams; }

  // Those who have greeted, and may speak gRPC.
  [[nodiscard]] Admission* admission() { return &admission_; }

 private:
  // --- On the handle server's thread.
  absl::StatusOr<OpenedSession> Open(const PeerIdentity& peer);
  void Close(uint64_t session, std::string_view reason);
  absl::Status OpenStream(const StreamPeer& peer, StreamConnection connection);

  const Deps deps_;
  Admission admission_;
  RefusalLog refusals_;  // the handle server's thread's
  StreamServer* streams_ = nullptr;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_RECEPTION_H_
