// Replays a trace in the world and says what it cost.
#ifndef GMB_TESTS_QUOTA_RECLAIM_REPLAY_H_
#define GMB_TESTS_QUOTA_RECLAIM_REPLAY_H_

#include <string>

#include "tests/quota/reclaim_trace.h"
#include "tests/quota/reclaim_world.h"

namespace gmb::quota {

struct ReplayResult {
  uint64_t uses = 0;
  uint64_t served = 0;
  // Uses whose model or burst was denied.
  uint64_t denied = 0;
  // From when a use was asked for until it began, of those that were served.
  double wait_p50_ms = 0;
  double wait_p99_ms = 0;
  // The same of uses by tenants whose model is guaranteed.
  double guaranteed_p99_ms = 0;
  double borrowing_p99_ms = 0;  // of the others
  // Of uses that met their memory away.
  uint64_t wakes = 0;
  double wake_p50_ms = 0;
  double wake_p99_ms = 0;
  uint64_t taken_ahead = 0;  // times that a session's memory was
  uint64_t regretted = 0;    // of them: nobody had used the bytes
  uint64_t brought_back = 0;
  uint64_t copied_out_bytes = 0;
  uint64_t copied_in_bytes = 0;
  uint64_t backed_ahead_bytes = 0;
  uint64_t evictions = 0;
  uint64_t pauses = 0;
  double resident = 0;  // of the pool, on average
  double active = 0;    // of the pool, in use by sessions that work
  std::string problem;  // what did not add up
};

ReplayResult Replay(const ReclaimTrace& trace, const WorldOptions& options);

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_RECLAIM_REPLAY_H_
