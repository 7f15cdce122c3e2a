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

void Lookout::CountTaken() { state_.look_budget.Edit({}).CountTaken(); }

bool Lookout::GoOn(Look* look, quota::PoolId pool, quota::Instant now) {
  return look->GoOn(state_, pool, now,
                    {state_.look_budget.Edit({}), state_.gate_watch.Edit({})});
}

std::vector<uint64_t> Lookout::Parked(quota::Instant now) {
  bool anybody_lacks =
      std::any_of(state_.standing->begin(), state_.standing->end(),
                  [](const StandingDemand& demand) { return !demand.met; });
  bool within_guarantee = false;
  for (const auto& [id, pool] : *state_.pools) {
    const auto& planned = pool->plan->planned_for;
    anybody_lacks |= planned.has_value();
    within_guarantee |= planned.has_value() && planned->within_guarantee;
  }
  GateWatchList& watch = state_.gate_watch.Edit({});
  if (!anybody_lacks) {
    watch.Clear();
    return {};
  }
  watch.SetUrgent(within_guarantee, now);
  return watch.Parked(state_, now);
}

void Lookout::Forget(const Session& session) {
  state_.gate_watch.Edit({}).Remove(session.id);
}

}  // namespace gmb::broker
