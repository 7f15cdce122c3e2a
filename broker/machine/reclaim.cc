// Who lacks bytes, and the steps that are taken for him (docs/reclaim.md).
#include <algorithm>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/machine.h"
#include "broker/machine/reclaim_rows.h"
#include "broker/machine/turn.h"
#include "broker/machine/wire_form.h"
#include "quota/planner.h"
#include "quota/shortlist.h"

namespace gmb::broker {
namespace {

// What a killed process held is waited for so long before others are asked.
constexpr quota::Nanoseconds kDyingTakes = std::chrono::seconds(1);
// A victim that has left its parking place meanwhile may be back soon.
constexpr quota::Nanoseconds kMissed = std::chrono::milliseconds(5);
constexpr quota::Nanoseconds kShortest = std::chrono::milliseconds(1);

}  // namespace

// One round: whether something was taken, and the next request may lack bytes
// beside it.
bool Machine::ServeShortage(Pool* pool, quota::Instant now, Turn& turn) {
  const auto shortage = ShortageIn(state_, pool->id, true);
  if (!shortage.has_value()) {
    ForgetShortage(pool);
    return false;
  }
  const quota::Demand demand = DemandOf(state_, *shortage, now);
  const Pool::Planned planned{shortage->request, shortage->within_guarantee,
                              demand.collects};
  const bool is_new = pool->planned_for != planned;
  // More than was lacking before helps nobody.
  const bool anew = is_new || shortage->lacking_bytes < pool->planned_bytes ||
                    now >= pool->replan_at;
  if (is_new) pool->look.Forget();
  pool->planned_for = planned;
  if (!pool->look.under_way() && !pool->look.plans_on()) {
    const uint64_t changes = state_.reclaim.changes(pool->id);
    if (!anew && !pool->look.IsDue(changes, now)) return false;
    if (!state_.look_budget.MayBegin()) {
      pool->replan_at =
          std::max(state_.look_budget.BeginsAt(), now + kShortest);
      return false;
    }
    pool->look.Begin(demand, changes);
  }
  pool->replan_at = now;
  if (pool->look.under_way() && !pool->look.GoOn(state_, pool->id, now))
    return false;  // the next turn does
  const quota::Plan plan = pool->look.MakePlan(state_, demand, now).plan;
  RememberTrims(shortage->request, plan, pool);
  pool->planned_bytes = shortage->lacking_bytes;
  pool->replan_at = quota::Instant::Max();
  if (CarryOut(plan, now, pool, turn)) {
    pool->look.PlanOn();
    pool->replan_at = now + kMissed;
    return true;
  }
  pool->look.Wait(now, pool->replan_at);
  pool->replan_at = pool->look.next_at();
  return false;
}

void Machine::ForgetShortage(Pool* pool) const {
  if (!pool->planned_for.has_value() && pool->trim_by.empty()) return;
  pool->planned_for.reset();
  pool->look.Forget();
  for (auto it = pool->trim_by.begin(); it != pool->trim_by.end();) {
    const auto entry = it++;
    if (!state_.engine.IsWaiting(entry->first)) pool->trim_by.erase(entry);
  }
  pool->replan_at = quota::Instant::Max();
}

// Whether a victim was taken at once.
bool Machine::CarryOut(const quota::Plan& plan, quota::Instant now, Pool* pool,
                       Turn& turn) {
  bool taken = false;
  for (const quota::TrimTarget& target : plan.trims) {
    AskToTrim(target, plan.trim_deadline, turn);
  }
  for (const quota::Victim& victim : plan.victims) {
    if (victim.start > now) {
      pool->replan_at = std::min(pool->replan_at, victim.start);
    } else if (TakeVictim(victim, turn)) {
      taken = true;
    } else {
      pool->replan_at = std::min(pool->replan_at, now + kMissed);
    }
  }
  pool->replan_at = std::min(pool->replan_at, plan.retry_at);
  return taken;
}

bool Machine::TakeVictim(const quota::Victim& victim, Turn& turn) {
  const auto found = state_.leases.find(victim.lease);
  // An earlier victim's end may have changed the world.
  if (found == state_.leases.end() || found->second->doomed) return false;
  Lease* lease = found->second.get();
  switch (victim.step) {
    case quota::Step::kEvict:
      if (lease->residence != Residence::kResident || lease->copies > 0 ||
          lease->asked()) {
        return false;
      }
      // What had no room at its grant may have some now.
      if (!ReserveRoom(*lease)) return false;
      if (!CloseAll(UsersOf(state_, *lease))) return false;
      StartEviction(lease, victim.deadline, victim.may_terminate, turn);
      return true;
    case quota::Step::kPause:
      if (!ReserveRoom(*lease)) return false;
      StartPause(lease, victim.deadline, turn);
      return true;
    case quota::Step::kTerminate:
      return TerminateUsers(*lease, turn);
    case quota::Step::kTrim:
      return false;  // plans have these apart
  }
  return false;
}

// Those who do not answer; where nobody is asked, all of them.
bool Machine::TerminateUsers(const Lease& lease, Turn& turn) {
  const quota::Instant now = turn.now();
  bool killed = false;
  for (const Mapping& mapping : lease.mappings) {
    if (lease.asked() && !(mapping.asked && now >= mapping.answer_by)) continue;
    killed |= Terminate(&state_.SessionAt(mapping.session), turn);
  }
  return killed;
}

// Whether it was killed now.
bool Machine::Terminate(Session* session, Turn& turn) {
  if (session->terminating || session->peer.pidfd == nullptr) return false;
  session->terminating = true;
  session->dying = true;
  state_.terminating[session->id] = turn.now() + kDyingTakes;
  state_.dying.emplace(turn.now() + kDyingTakes, session->id);
  TouchLeases(*session);
  v1::Event event = NewEvent("terminated", session->tenant);
  event.set_session_id(session->id);
  event.set_message(absl::StrCat("pid ", session->peer.pid));
  turn.Add(Kill{session->peer.pidfd});
  turn.Publish(std::move(event));
  return true;
}

// Killed processes that have not ended in time: what they have is not counted
// on any more.
void Machine::CheckDying(quota::Instant now) {
  while (!state_.dying.empty() && state_.dying.begin()->first <= now) {
    const uint64_t id = state_.dying.begin()->second;
    state_.dying.erase(state_.dying.begin());
    Session& session = state_.SessionAt(id);
    session.dying = false;
    TouchLeases(session);
  }
}

// Sessions that were at work when somebody lacked bytes, and have parked.
void Machine::WatchGates(quota::Instant now) {
  const bool anybody_lacks =
      !state_.standing.empty() ||
      std::any_of(state_.pools.begin(), state_.pools.end(),
                  [](const auto& p) { return p.second->planned_for; });
  if (!anybody_lacks) return state_.gate_watch.Clear();
  state_.gate_watch.SetUrgent(
      std::any_of(state_.pools.begin(), state_.pools.end(),
                  [](const auto& p) {
                    return p.second->planned_for &&
                           p.second->planned_for->within_guarantee;
                  }),
      now);
  for (const uint64_t id : state_.gate_watch.Parked(state_, now))
    OnParked(state_.SessionAt(id), now);
}

// What it has may be taken now: for the requests that lack bytes, plans are
// made with it beside what the last look has found. Others are woken.
void Machine::OnParked(const Session& session, quota::Instant now) {
  std::map<quota::PoolId, uint64_t> before;
  for (const auto& [id, pool] : state_.pools)
    before[id] = state_.reclaim.changes(id);
  TouchLeases(session);
  // It may have been the last of its group: then leases of others go as well.
  if (!session.group.empty()) return;
  for (auto& [id, pool] : state_.pools) {
    if (!pool->planned_for.has_value()) continue;
    std::vector<quota::LeaseId> its;
    for (const quota::LeaseId lease : session.leases) {
      if (its.size() > quota::Shortlist::kLongest) break;
      if (state_.LeaseAt(lease).request.pool == id) its.push_back(lease);
    }
    const bool known =
        pool->look.Add(its, {before.at(id), state_.reclaim.changes(id)}, now);
    if (known) pool->replan_at = std::min(pool->replan_at, now);
  }
}

void Machine::TouchLeases(const Session& session) {
  for (const quota::LeaseId id : session.leases)
    state_.reclaim.Touch(state_, state_.LeaseAt(id));
}

quota::Instant Machine::ReclaimDue() const {
  quota::Instant due = quota::Instant::Max();
  for (const auto& [id, pool] : state_.pools)
    due = std::min(due, pool->replan_at);
  if (!state_.standing.empty()) due = std::min(due, state_.standing_at);
  for (const auto& [tenant, departure] : state_.departures) {
    if (departure.done != nullptr) due = std::min(due, departure.deadline);
  }
  if (state_.options.backing.bytes_per_second > 0)
    due = std::min(due, state_.backing_at);
  if (!state_.pausing.empty()) due = std::min(due, state_.pauses_at);
  if (!state_.dying.empty()) due = std::min(due, state_.dying.begin()->first);
  if (!state_.restore_times.empty())
    due = std::min(due, std::get<0>(*state_.restore_times.begin()));
  due = std::min(due, state_.reclaim.answers_due());
  due = std::min(due, state_.gate_watch.due());
  return std::min(due, state_.shared_names.due());
}

}  // namespace gmb::broker
