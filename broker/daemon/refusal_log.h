#ifndef GMB_BROKER_DAEMON_REFUSAL_LOG_H_
#define GMB_BROKER_DAEMON_REFUSAL_LOG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/core/event_bus.h"
#include "broker/log/rate_limit.h"
#include "broker/machine/peer.h"

namespace gmb::broker {

// "NO_SUCH_TENANT", or the status's own word.
[[nodiscard]] std::string ReasonName(const absl::Status& why);

// Makes an event of each peer that was refused a session: who, by which socket,
// and why, but never what it sent as its token. Of each reason at most 10 at
// once and one a second, since clients try again as often as they like; the
// next one says how many were left out. Not thread-safe.
class RefusalLog {
 public:
  // The bus outlives it.
  explicit RefusalLog(EventBus* events) : events_(events) {}

  void Add(const PeerIdentity& peer, const absl::Status& why, absl::Time now);

 private:
  EventBus* const events_;
  RateLimit limit_{/*burst=*/10, /*per_second=*/1};
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_REFUSAL_LOG_H_
