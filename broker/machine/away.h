#ifndef GMB_BROKER_MACHINE_AWAY_H_
#define GMB_BROKER_MACHINE_AWAY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "broker/machine/lease.h"
#include "broker/machine/session.h"
#include "broker/machine/state.h"
#include "quota/units.h"

namespace gmb::broker {

// Leases that have to come back before the gates of these sessions can open.
struct Away {
  bool moving = false;      // on the way in or out, or put off
  bool asked_back = false;  // shared, and another asks for it
  std::vector<quota::LeaseId> evicted;
  // Unmapped, or not filled; with the session that has it.
  std::vector<std::pair<Lease*, Session*>> unready;
  uint64_t looks = 0;  // at leases
};

[[nodiscard]] Away AwayOf(const State& state,
                          const std::vector<Session*>& members);

// Whether the lease moves, for one of these sessions; they are in the order of
// ids.
[[nodiscard]] bool MovesFor(const Lease& lease,
                            const std::vector<Session*>& members);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_AWAY_H_
