#ifndef GMB_BROKER_DAEMON_RELOAD_NEWS_H_
#define GMB_BROKER_DAEMON_RELOAD_NEWS_H_

#include <cstdint>
#include <string>

#include "broker/core/clock.h"
#include "broker/core/event_bus.h"
#include "broker/machine/file_change.h"

namespace gmb::broker {

// Tells the log and those who watch what became of the file.
class ReloadNews {
 public:
  ReloadNews(EventBus* events, const Clock* clock)
      : events_(events), clock_(clock) {}

  // Tells the changes; empty: there are none.
  void Reloaded(const std::string& changes) const;
  void Failed(const std::string& why) const;
  // `was_seen_off`: a tenant that stays was asked to leave before.
  void Pending(const HeldBack& held, bool was_seen_off) const;
  void RestartNeeded(const std::string& settings) const;

 private:
  void Publish(v1::Event event, const std::string& message) const;

  EventBus* const events_;
  const Clock* const clock_;
};

// The bytes of the tenant's processes, evicted and unreturned bytes included.
[[nodiscard]] uint64_t HeldBytes(const v1::Tenant& tenant);

// "the limit of tenant a on host-0 stays as it is: ..."
[[nodiscard]] std::string PendingText(const HeldBack& held, bool was_seen_off);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_RELOAD_NEWS_H_
