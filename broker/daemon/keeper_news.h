#ifndef GMB_BROKER_DAEMON_KEEPER_NEWS_H_
#define GMB_BROKER_DAEMON_KEEPER_NEWS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "broker/core/clock.h"
#include "broker/core/event_bus.h"
#include "broker/keeping/keeper_client.h"

namespace gmb::broker {

// Tells the log and those who watch what became of the keeper, and of what was
// to be kept.
class KeeperNews {
 public:
  // All of them outlive it.
  KeeperNews(const KeeperClient* client, EventBus* events, const Clock* clock)
      : client_(client), events_(events), clock_(clock) {}

  // It ends with this broker then.
  void SessionNotKept(uint64_t session, const absl::Status& why) const;

  // --- On the thread of the keeper's watch.
  void Lost() ABSL_LOCKS_EXCLUDED(mu_);
  void Found() ABSL_LOCKS_EXCLUDED(mu_);
  // So many records and slabs are not kept, for lack of room: told once, until
  // there are none.
  void LeftOut(uint64_t count);

  // Why it is lost, as was told last; empty: it is not. Any thread, never waits.
  [[nodiscard]] std::string problem() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void SetProblem(const std::string& problem) ABSL_LOCKS_EXCLUDED(mu_);
  void Publish(v1::Event event, const std::string& message) const;

  const KeeperClient* const client_;
  EventBus* const events_;
  const Clock* const clock_;
  bool said_left_out_ = false;  // the watch's thread's
  mutable base::Mutex mu_;
  std::string problem_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_KEEPER_NEWS_H_
