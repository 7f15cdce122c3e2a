#ifndef GMB_BROKER_MACHINE_STANDING_DEMAND_H_
#define GMB_BROKER_MACHINE_STANDING_DEMAND_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "broker/machine/look.h"
#include "broker/machine/verdict_walk.h"
#include "gmb/v1/admin.pb.h"
#include "quota/reclaim.h"
#include "quota/units.h"

namespace gmb::broker {

// Bytes that are wanted back although no request waits for them: an operator
// asked, a limit or a pool was made smaller, or a pool drains. Stands until
// nothing more is going to be wanted, or its time is over.
struct StandingDemand {
  using Done = std::function<void(absl::StatusOr<v1::ReclaimResponse>)>;

  quota::Cause cause = quota::Cause::kOperator;
  quota::TenantId tenant{};  // 0 with kPoolShrink and kPoolDrain
  quota::PoolId pool{};
  Look look;
  bool met = false;  // nothing is wanted for the time being
  quota::Instant trim_by = quota::Instant::Max();  // see quota::Demand
  // --- Of kOperator.
  uint64_t resident_before_bytes = 0;
  uint64_t wanted_bytes = 0;
  bool all = false;  // no bytes were named: what can be had
  quota::Step last_step = quota::Step::kEvict;
  quota::Instant deadline = quota::Instant::Max();
  Done done = nullptr;
  // Nothing more can be had: why not is being found out.
  std::optional<VerdictWalk> why = {};
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_STANDING_DEMAND_H_
