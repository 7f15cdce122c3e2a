// `gmb run`: what is free, while a program finds out what it can have.
#include "client/preload/steady_budget.h"

#include <algorithm>

namespace gmb::preload {

Budget SteadyBudget::At(const Budget& budget, TimePoint now) {
  if (!first_question_.has_value()) first_question_ = now;
  if (now - *first_question_ >= kSteadyFor) return budget;
  // An operator's change is the tenant's own, and begins anew.
  if (budget.total_bytes != first_.total_bytes) first_ = budget;
  Budget steady = budget;
  const uint64_t once = first_.free_bytes + first_.leased_bytes;
  const uint64_t most = std::min(once, budget.total_bytes);
  steady.free_bytes =
      most > budget.leased_bytes ? most - budget.leased_bytes : 0;
  return steady;
}

}  // namespace gmb::preload
