// How much a standing demand lacks, as its pool, its tenant and other demands are
// by now.
#include "broker/machine/wanted_back.h"

#include <algorithm>
#include <vector>

#include "broker/machine/state.h"

namespace gmb::broker {
namespace {

// On the device above that size.
uint64_t BytesAbove(const quota::PoolView& pool, uint64_t size_bytes) {
  if (pool.capacity_bytes <= size_bytes) return 0;
  const uint64_t held_bytes = pool.charged_bytes + pool.missing_bytes;
  return held_bytes - std::min(held_bytes, size_bytes);
}

// No lease that is taken can make the pool smaller than guarantees in force, hard
// and missing bytes do. Such a one would stay away for as long as they do: nobody
// borrows in a pool that is to shrink.
uint64_t ShrinksBy(const quota::PoolView& pool) {
  return BytesAbove(pool, std::max(pool.target_bytes,
                                   pool.committed_bytes + pool.missing_bytes));
}

// By an operator. Of a broker that stops, and of a device that is lost, nothing
// is copied any more.
bool IsDrained(const State& state, quota::PoolId pool) {
  return state.PoolAt(pool).device->draining;
}

}  // namespace

uint64_t StillWanted(const State& state, const StandingDemand& demand) {
  const auto tenant = state.engine->HoldingOf(demand.tenant, demand.pool);
  switch (demand.cause) {
    case quota::Cause::kOperator: {
      if (!tenant.has_value()) return 0;
      const uint64_t back =
          demand.resident_before_bytes -
          std::min(demand.resident_before_bytes, tenant->resident_bytes);
      return demand.wanted_bytes - std::min(demand.wanted_bytes, back);
    }
    case quota::Cause::kTenantDelete:
      return tenant.has_value() && state.departures->contains(demand.tenant)
                 ? tenant->resident_bytes
                 : 0;
    case quota::Cause::kOverLimit:
      return tenant.has_value() ? tenant->over_limit_bytes : 0;
    case quota::Cause::kPoolShrink:
      return ShrinksBy(*state.engine->Pool(demand.pool));
    case quota::Cause::kPoolDrain:
      return IsDrained(state, demand.pool)
                 ? state.engine->Pool(demand.pool)->charged_bytes
                 : 0;
    default:
      return 0;
  }
}

uint64_t WantedOfTrims(const State& state, const StandingDemand& demand) {
  if (demand.cause != quota::Cause::kPoolShrink || state.trimmers->empty())
    return 0;
  const quota::PoolView pool = *state.engine->Pool(demand.pool);
  return BytesAbove(pool, pool.target_bytes);
}

bool LimitsTake(const State& state, const StandingDemand& shrink) {
  if (shrink.cause != quota::Cause::kPoolShrink) return false;
  const auto takes = [&](const StandingDemand& limit) {
    if (limit.cause != quota::Cause::kOverLimit || limit.pool != shrink.pool)
      return false;
    return limit.look.under_way() ||
           (limit.look.plans_on() &&
            StillWanted(state, limit) >
                state.reclaim->IncomingBytes(limit.pool, limit.tenant, true));
  };
  return std::any_of(state.standing->begin(), state.standing->end(), takes);
}

bool IsOver(const State& state, const StandingDemand& demand) {
  switch (demand.cause) {
    case quota::Cause::kTenantDelete:
      return !state.departures->contains(demand.tenant);
    case quota::Cause::kPoolShrink: {
      const quota::PoolView pool = *state.engine->Pool(demand.pool);
      return pool.capacity_bytes <= pool.target_bytes;
    }
    case quota::Cause::kPoolDrain:
      return !IsDrained(state, demand.pool);
    default:
      return StillWanted(state, demand) == 0;
  }
}

std::vector<StandingDemand> DemandsOf(const State& state, quota::PoolId pool) {
  // Limits first: what they take makes a pool smaller as well.
  std::vector<StandingDemand> demands;
  for (const auto& [tenant, unused] : *state.tenants) {
    demands.push_back({.cause = quota::Cause::kOverLimit,
                       .tenant = tenant,
                       .pool = pool,
                       .look = {}});
  }
  for (const quota::Cause cause :
       {quota::Cause::kPoolShrink, quota::Cause::kPoolDrain})
    demands.push_back({.cause = cause, .pool = pool, .look = {}});
  return demands;
}

}  // namespace gmb::broker
