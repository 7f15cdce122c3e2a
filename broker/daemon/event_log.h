#ifndef GMB_BROKER_DAEMON_EVENT_LOG_H_
#define GMB_BROKER_DAEMON_EVENT_LOG_H_

#include "broker/core/event_bus.h"

namespace gmb::broker {

// Writes every event of the bus to the log, one line each; what clients can
// cause as often as they like is rate-limited.
class EventLog {
 public:
  explicit EventLog(EventBus* bus);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

 private:
  EventBus* const bus_;
  const uint64_t subscription_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_EVENT_LOG_H_
