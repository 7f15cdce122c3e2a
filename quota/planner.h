// Which leases give way to a demand, by which step, and when.
//
// Pure: a plan follows from the snapshot, the demand and the time alone. O(n)
// for n leases of the snapshot, so that it can run under the caller's lock.
#ifndef GMB_QUOTA_PLANNER_H_
#define GMB_QUOTA_PLANNER_H_

#include <cstdint>
#include <vector>

#include "quota/reclaim.h"

namespace gmb::quota {

struct PlannerOptions {
  // Whether a request above its guarantee may also be served from parked memory
  // that lies within the guarantee of its owner. (The owner gets it back as
  // soon as it asks, being within its guarantee then.)
  bool lend_parked_guarantees = false;
  bool pause = true;
  bool evict = true;
  // How long clients have for giving back what they cache, before anything is
  // taken.
  Nanoseconds trim_wait = std::chrono::milliseconds(20);
  // A session whose memory has been unused for so long rests. The others are
  // asked last for their caches: they would have to get them again at once.
  Nanoseconds rest = std::chrono::seconds(1);
  // How long a client has for unmapping once its contents are copied.
  Nanoseconds unmap_grace = std::chrono::seconds(2);
  // How long one that has not answered by then, and may be terminated, has
  // until it is.
  Nanoseconds kill_grace = std::chrono::seconds(5);
  // A session is taken gladly whose usual gap is so many times as long as to
  // take its memory out and back.
  int64_t gap_round_trips = 4;
  // How long a lease must have been resident, in restores of it.
  int64_t residency_restores = 4;
  uint64_t copy_bytes_per_second = 50'000'000'000;  // to the host pool
};

// One lease's verdict, for `why`.
struct LeaseVerdict {
  LeaseId lease{};
  Verdict verdict = Verdict::kNotNeeded;
};

// `why`, if given, gets one entry for each lease of the pools in question.
Plan MakePlan(const Snapshot& snapshot, const Demand& demand, Instant now,
              const PlannerOptions& options,
              std::vector<LeaseVerdict>* why = nullptr);

// Whether it comes into use so often that to take it would hardly pay: others
// come before it.
bool IsRestless(const LeaseRow& lease, const PlannerOptions& options);

// Until when a lease stays resident.
Instant ResidentUntil(const LeaseRow& lease, const TenantRow& tenant,
                      const PlannerOptions& options);

}  // namespace gmb::quota

#endif  // GMB_QUOTA_PLANNER_H_
