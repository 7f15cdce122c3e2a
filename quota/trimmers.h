// The sessions that are asked to give back their caches, and their order.
#ifndef GMB_QUOTA_TRIMMERS_H_
#define GMB_QUOTA_TRIMMERS_H_

#include <cstdint>
#include <vector>

#include "quota/candidate.h"

namespace gmb::quota {

struct Trimmers {
  // A row of each session that may be asked, in their order: those that rest,
  // the borrowers among them first, and then the others.
  std::vector<const LeaseRow*> rows;
  // That others were asked for a moment ago, and may still give.
  uint64_t asked_bytes = 0;
};
// On that pool. The rows are the snapshot's.
Trimmers TrimmersOf(const Snapshot& snapshot, const Judge& judge, PoolId pool,
                    Instant now, const PlannerOptions& options);

// Whether its memory has been unused for long enough that what it caches will
// hardly be missed.
bool Rests(const LeaseRow& lease, Instant now, const PlannerOptions& options);

}  // namespace gmb::quota

#endif  // GMB_QUOTA_TRIMMERS_H_
