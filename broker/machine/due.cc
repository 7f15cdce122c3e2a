// When the machine wants to be called again, if nothing happens before.
#include <algorithm>
#include <tuple>

#include "broker/machine/backed.h"
#include "broker/machine/machine.h"

namespace gmb::broker {
namespace {

// Requests that wait may have room in the host pool by now.
quota::Instant RoomDue(const State& state) {
  const RoomLook& look = *state.room_look;
  const bool is_due =
      look.under_way() || look.IsNews(state.host_books->gains());
  return is_due && !state.pending->empty() ? look.not_before()
                                           : quota::Instant::Max();
}

quota::Instant ReclaimDue(const State& state, quota::Instant now) {
  quota::Instant due = quota::Instant::Max();
  for (const auto& [id, pool] : *state.pools) {
    due = std::min(due, pool->plan->replan_at);
    if (BacksAhead(state, *pool, now)) due = std::min(due, *state.backing_at);
  }
  if (!state.standing->empty()) due = std::min(due, *state.standing_at);
  for (const auto& [tenant, departure] : *state.departures) {
    if (departure.done != nullptr) due = std::min(due, departure.deadline);
  }
  if (!state.pausing->empty()) due = std::min(due, *state.pauses_at);
  if (!state.dying->empty()) due = std::min(due, state.dying->begin()->first);
  if (!state.restore_times->empty())
    due = std::min(due, std::get<0>(*state.restore_times->begin()));
  if (!state.put_off->empty()) {
    due = std::min(due,
                   std::max(state.put_off->first().first, *state.put_off_at));
  }
  if (!state.restores_put_off->empty())
    due = std::min(due, state.restores_put_off->begin()->first);
  due = std::min(due, state.reclaim->answers_due());
  due = std::min(due, state.gate_watch->due());
  return std::min(due, state.shared_names->due());
}

}  // namespace

quota::Instant Machine::NextDue(quota::Instant now) const {
  if (!state_.ended_sessions->empty()) return now;
  quota::Instant due =
      state_.engine->NextDeadline().value_or(quota::Instant::Max());
  due = std::min(due, ReclaimDue(state_, now));
  due = std::min(due, RoomDue(state_));
  for (const auto& [id, pool] : *state_.pools) {
    if (pool->device->lost) continue;
    due = std::min(due, pool->device->next_audit);
    const quota::Instant mapped = pool->device->mappings.end();
    if (now < mapped) due = std::min(due, mapped);
    // Anything else that keeps a refill back looks again when it is over.
    const auto expiry = pool->slabs->NextExpiry();
    if (expiry.has_value() && MayRefill(state_, *pool, now))
      due = std::min(due, std::max(*expiry, pool->device->refill_after));
  }
  return std::max(due, now);
}

}  // namespace gmb::broker
