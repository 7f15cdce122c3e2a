// Whether a plan keeps the rules of reclaim, judged the plain way from
// docs/reclaim.md: victim by victim, and not by the planner's own functions.
#ifndef GMB_TESTS_QUOTA_PLAN_CHECK_H_
#define GMB_TESTS_QUOTA_PLAN_CHECK_H_

#include <string>

#include "quota/planner.h"

namespace gmb::quota {

// For demands of requests (kWithinGuarantee, kBorrow). Empty if all is well.
std::string CheckPlan(const Snapshot& snapshot, const Demand& demand,
                      Instant now, const PlannerOptions& options,
                      const Plan& plan);

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_PLAN_CHECK_H_
