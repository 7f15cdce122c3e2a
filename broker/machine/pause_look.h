#ifndef GMB_BROKER_MACHINE_PAUSE_LOOK_H_
#define GMB_BROKER_MACHINE_PAUSE_LOOK_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "broker/machine/session.h"
#include "broker/machine/state.h"
#include "quota/reclaim.h"
#include "quota/units.h"

namespace gmb::broker {

// The gates of sessions that are paused together, as they are at this moment:
// whether all have parked, and whether one that has is held up by another of
// its group. Those that only share a lease do not wait for each other.
class PauseLook {
 public:
  PauseLook(const State& state, const std::vector<Session*>& sessions,
            quota::Instant now);

  // The least parked.
  [[nodiscard]] quota::Gate least() const { return least_; }
  // The pause of one of them has lasted for as long as it may.
  [[nodiscard]] bool IsOver() const {
    return until_ == quota::Instant::Max() || now_ >= until_;
  }
  // The session, or another of its group, has not parked.
  [[nodiscard]] bool IsAtWork(const Session& session) const {
    return Of(session).at_work;
  }
  // One of its group has parked and waits to go on, while another one has not
  // parked.
  [[nodiscard]] bool IsWaitedIn(const Session& session) const {
    return IsWaitedIn(Of(session));
  }
  // It, or its group, has been paused for as long as that may take; or nobody is
  // paused any more.
  [[nodiscard]] bool HadItsTime(const Session& session) const {
    const quota::Instant until = Of(session).until;
    return until == quota::Instant::Max() ? until_ == until : now_ >= until;
  }
  // IsWaitedIn, for too long by now.
  [[nodiscard]] bool AnyHeldUp() const;

 private:
  // Or a session that is in none.
  struct Group {
    bool at_work = false;
    quota::Instant waits_since = quota::Instant::Max();  // one that has parked
    uint32_t held_up = 0;  // pauses in a row that ended by that
    quota::Nanoseconds pause_grace{0};
    quota::Instant until = quota::Instant::Max();
  };

  [[nodiscard]] uint64_t KeyOf(const Session& session) const;
  [[nodiscard]] const Group& Of(const Session& session) const {
    return groups_.at(KeyOf(session));
  }
  [[nodiscard]] static bool IsWaitedIn(const Group& group) {
    return group.at_work && group.waits_since != quota::Instant::Max();
  }
  [[nodiscard]] bool IsHeldUp(const Group& group) const;

  const State& state_;
  const quota::Instant now_;
  quota::Gate least_ = quota::Gate::kClosed;
  quota::Instant until_ = quota::Instant::Max();
  absl::flat_hash_map<uint64_t, Group> groups_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_PAUSE_LOOK_H_
