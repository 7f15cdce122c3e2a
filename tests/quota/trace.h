// A trace of requests as a fleet of model servers makes them: many tenants,
// each at home on a few pools, with quiet and busy times; most requests small,
// a few a large part of a pool. The same seed gives the same trace.
#ifndef GMB_TESTS_QUOTA_TRACE_H_
#define GMB_TESTS_QUOTA_TRACE_H_

#include <cstdint>
#include <vector>

#include "quota/tenant_quota.h"
#include "quota/units.h"

namespace gmb::quota {

struct TraceOptions {
  uint64_t seed = 1;
  uint64_t pools = 100;
  uint64_t tenants = 1000;
  uint64_t requests = 60000;
  uint64_t pools_per_tenant = 3;
  Nanoseconds length = std::chrono::hours(1);
};

struct TraceQuota {
  PoolId pool{};
  TenantId tenant{};
  TenantQuota quota{};
};

struct TraceRequest {
  Instant at{};
  TenantId tenant{};
  PoolId pool{};
  uint64_t bytes = 0;
  Nanoseconds wait{0};  // how long it may wait
  Nanoseconds hold{0};  // how long its lease is held
};

struct Trace {
  uint64_t pool_bytes = 0;
  uint64_t granularity_bytes = 0;
  std::vector<TraceQuota> quotas;
  std::vector<TraceRequest> requests;  // by time
  std::vector<TraceQuota> changes;     // made while it runs, evenly spread
};

Trace MakeTrace(const TraceOptions& options);

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_TRACE_H_
