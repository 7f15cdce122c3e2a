#ifndef GMB_BROKER_MACHINE_RECLAIM_ROWS_H_
#define GMB_BROKER_MACHINE_RECLAIM_ROWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "broker/machine/group_gates.h"
#include "broker/machine/state.h"
#include "quota/planner.h"
#include "quota/reclaim.h"
#include "quota/units.h"
#include "quota/view.h"

namespace gmb::broker {

// The request that lacks bytes, and is served next; beside what is incoming
// (ReclaimIndex::IncomingBytes).
[[nodiscard]] std::optional<quota::Shortage> ShortageIn(const State& state,
                                                        quota::PoolId pool,
                                                        bool pausing);
// The demand of that request, for the planner.
[[nodiscard]] quota::Demand DemandOf(const State& state,
                                     const quota::Shortage& shortage,
                                     quota::Instant now);
// One lease, as it is now; its group as `groups` has it.
[[nodiscard]] quota::LeaseRow RowOf(const State& state, const Lease& lease,
                                    quota::Instant now,
                                    GroupGates* groups = nullptr);
[[nodiscard]] quota::TenantRow TenantRowOf(const State& state,
                                           quota::TenantId tenant,
                                           quota::PoolId pool);
// Whether an ahead-of-need copy may be made is decided on the same rows.
struct ReclaimRows {
  std::vector<quota::LeaseRow> leases;
  std::vector<quota::TenantRow> tenants;
};
// Those of them that still are.
[[nodiscard]] ReclaimRows RowsOf(const State& state,
                                 const std::vector<quota::LeaseId>& leases,
                                 quota::Instant now);
struct PlanMade {
  quota::Plan plan;
  uint64_t looks = 0;          // at sessions that could trim: TrimmerRows
  uint64_t trimmers_from = 0;  // where the next plan begins with these
};
// A plan among those that come first; see Look. `why`: what was decided of
// each, for people.
[[nodiscard]] PlanMade PlanAmong(
    const State& state, const quota::Demand& demand, quota::Instant now,
    const Candidates& candidates,
    std::vector<quota::LeaseVerdict>* why = nullptr);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_RECLAIM_ROWS_H_
