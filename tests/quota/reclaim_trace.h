// Traces of tenants that share one device and sleep now and then, by class. The
// same seed gives the same trace.
#ifndef GMB_TESTS_QUOTA_RECLAIM_TRACE_H_
#define GMB_TESTS_QUOTA_RECLAIM_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "quota/units.h"

namespace gmb::quota {

enum class TraceClass { kBursty, kPeriodic, kDiurnal, kAdversarial };
const char* TraceName(TraceClass trace_class);

struct ReclaimTraceOptions {
  TraceClass trace_class = TraceClass::kBursty;
  uint64_t seed = 1;
  Nanoseconds length = std::chrono::minutes(20);
};

struct TraceTenant {
  uint64_t guarantee_bytes = 0;
  uint64_t limit_bytes = 0;
  uint64_t weight_bytes = 0;  // of the model: PRESERVE, leased at its start
};

// The tenant's model is used for a while, with or without a burst: further
// memory (DISCARD) for that time.
struct TraceUse {
  Instant at{};
  uint64_t tenant = 0;  // index
  Nanoseconds work{};
  Nanoseconds wait{};  // how long it may wait for being served
  uint64_t burst_bytes = 0;
};

struct ReclaimTrace {
  uint64_t pool_bytes = 0;
  std::vector<TraceTenant> tenants;
  std::vector<TraceUse> uses;  // by time
};

ReclaimTrace MakeReclaimTrace(const ReclaimTraceOptions& options);

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_RECLAIM_TRACE_H_
