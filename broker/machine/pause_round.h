#ifndef GMB_BROKER_MACHINE_PAUSE_ROUND_H_
#define GMB_BROKER_MACHINE_PAUSE_ROUND_H_

#include <cstdint>

#include "absl/container/flat_hash_set.h"

namespace gmb::broker {

// Sessions that are paused are looked at one after the other, some in a turn.
struct PauseRound {
  uint64_t next = 0;  // session
  // At leases and sessions, in all; and when this round began.
  uint64_t looks = 0;
  uint64_t began_at = 0;
  // In this round, since those that are bound together are looked at together.
  absl::flat_hash_set<uint64_t> looked_at;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_PAUSE_ROUND_H_
