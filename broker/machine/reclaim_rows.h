#ifndef GMB_BROKER_MACHINE_RECLAIM_ROWS_H_
#define GMB_BROKER_MACHINE_RECLAIM_ROWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "broker/machine/state.h"
#include "quota/planner.h"
#include "quota/reclaim.h"
#include "quota/units.h"
#include "quota/view.h"

namespace gmb::broker {

// Bytes of the pool, and of the tenant if one is named, that are on their way
// back, those of dead sessions too. `pausing`: with what is only to be evicted
// once its session's pause has taken effect.
[[nodiscard]] uint64_t IncomingBytes(const State& state, quota::PoolId pool,
                                     std::optional<quota::TenantId> tenant,
                                     bool pausing, quota::Instant now);
// The request that lacks bytes, and is served next; beside what is incoming.
[[nodiscard]] std::optional<quota::Shortage> ShortageIn(const State& state,
                                                        quota::PoolId pool,
                                                        bool pausing,
                                                        quota::Instant now);
// What that request demands of the planner.
[[nodiscard]] quota::Demand DemandOf(const State& state,
                                     const quota::Shortage& shortage,
                                     quota::Instant now);
// A plan over every lease. `why`, if not null: what was decided of each.
[[nodiscard]] quota::Plan PlanFor(const State& state,
                                  const quota::Demand& demand,
                                  quota::Instant now,
                                  std::vector<quota::LeaseVerdict>* why);
// Whether an ahead-of-need copy may be made is decided on the same rows.
struct ReclaimRows {
  std::vector<quota::LeaseRow> leases;
  std::vector<quota::TenantRow> tenants;
};
[[nodiscard]] ReclaimRows BuildRows(const State& state, quota::Instant now);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_RECLAIM_ROWS_H_
