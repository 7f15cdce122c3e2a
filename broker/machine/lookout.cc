// The bounded work of a turn: how much of it there is, and who parks meanwhile.
#include "broker/machine/lookout.h"

#include <algorithm>

namespace gmb::broker {

void Lookout::BeginTurn(quota::Instant now) {
  state_.look_budget.Edit({}).BeginTurn(now);
}

void Lookout::Spend(uint64_t leases) {
  state_.look_budget.Edit({}).Spend(leases);
}

bool Lookout::GoOn(Look* look, quota::PoolId pool, quota::Instant now) {
  return look->GoOn(state_, pool, now,
                    {state_.look_budget.Edit({}), state_.gate_watch.Edit({})});
}

void Lookout::WatchGates(quota::Instant now) {
  const bool anybody_lacks =
      !state_.standing->empty() ||
      std::any_of(state_.pools->begin(), state_.pools->end(),
                  [](const auto& p) {
                    return p.second->plan->planned_for.has_value();
                  });
  GateWatchList& watch = state_.gate_watch.Edit({});
  if (!anybody_lacks) return watch.Clear();
  for (const uint64_t id : watch.Parked(state_, now))
    index_.TouchLeasesOf(state_.SessionAt(id));
}

void Lookout::Forget(const Session& session) {
  state_.gate_watch.Edit({}).Remove(session.id);
}

}  // namespace gmb::broker
