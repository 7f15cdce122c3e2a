// Memory ahead of need: which idle memory leaves a pool, and which comes back,
// before anybody asks for it, so that a request that grows and a session that
// wakes find memory ready. A policy that is replayed with traces; the broker
// does without it (docs/reclaim-study.md).
//
// Pure: a step follows from the snapshot, what is known of the pool and of the
// sessions, and the time. Bytes and times as everywhere in quota/.
#ifndef GMB_TESTS_QUOTA_AHEAD_H_
#define GMB_TESTS_QUOTA_AHEAD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "quota/planner.h"
#include "quota/reclaim.h"

namespace gmb::quota {

struct AheadOptions {
  // Shares of a pool. Once less than `low` is free, idle memory is taken until
  // `high` is. 0: none is.
  double low = 0;
  double high = 0;
  // Memory is taken that has been idle for so long at least, and for so many
  // times as long as it takes to get it out and back, and for half of its
  // session's usual gap.
  Nanoseconds idle_for = std::chrono::seconds(10);
  int64_t round_trips = 4;
  // Only where somebody has waited for memory within this time.
  Nanoseconds waited_within = std::chrono::minutes(10);
  // Whether sessions are brought back when they are expected.
  bool bring_back = false;
  // A session that was brought back is left alone until it is used, or for so
  // long.
  Nanoseconds keep_for = std::chrono::minutes(1);
};

struct AheadPool {
  PoolId pool{};
  uint64_t capacity_bytes = 0;
  uint64_t free_bytes = 0;                // charged to nobody
  uint64_t incoming_bytes = 0;            // of leases on their way out
  bool anybody_waits = false;             // for memory of this pool, now
  std::optional<Instant> waited_at = {};  // when somebody last did
};

// The past of a session; sorted by session. One that is not listed has been
// through nothing.
struct AheadSession {
  SessionId session{};
  // Its memory was taken ahead since it last came into use.
  bool taken = false;
  // It was brought back ahead then, and has not been used since.
  std::optional<Instant> brought_back = {};
  // When it last came into use, and the time from one use to the next; 0: not
  // known.
  std::optional<Instant> used_at = {};
  Nanoseconds usual_gap{0};
};

// Leases of one session to be taken now: none, or of the longest idle one of
// those that may be, as many as bring what is free up to the high mark. Shared
// leases and members of groups stay: others' wakes would pay for them.
[[nodiscard]] std::vector<LeaseId> TakeAhead(
    const Snapshot& snapshot, const AheadPool& pool,
    absl::Span<const AheadSession> sessions, Instant now,
    const AheadOptions& options, const PlannerOptions& planner);

// A session whose evicted leases on this pool are to come back now: it is
// expected within the time that this takes, or a second, and the high mark
// stays free. Of those, the one that is expected first.
[[nodiscard]] std::optional<SessionId> BringBackAhead(
    const Snapshot& snapshot, const AheadPool& pool,
    absl::Span<const AheadSession> sessions, Instant now,
    const AheadOptions& options, const PlannerOptions& planner);

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_AHEAD_H_
