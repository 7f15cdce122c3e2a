// Requests that lack bytes, and the steps that are taken for them
// (docs/reclaim.md).
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "broker/machine/lease_users.h"
#include "broker/machine/reclaim_rows.h"
#include "broker/machine/reclaimer.h"
#include "quota/planner.h"

namespace gmb::broker {
namespace {

// A victim that has left its parking place meanwhile may be back soon.
constexpr quota::Nanoseconds kMissed = std::chrono::milliseconds(5);

// Leases of those that have parked, in one turn; what the others have is looked
// for slice by slice.
constexpr size_t kMostParked = 1024;

}  // namespace

bool Reclaimer::ServeShortage(Pool* pool, quota::Instant now, Turn& turn) {
  const auto shortage = ShortageIn(state_, pool->id, true);
  if (!shortage.has_value()) {
    ForgetShortage(pool);
    return false;
  }
  PoolPlan& its = pool->plan.Edit({});
  its.lacked_at = now;
  const quota::Demand demand = DemandOf(state_, *shortage, now);
  const PoolPlan::Planned planned{shortage->request, shortage->within_guarantee,
                                  demand.collects};
  const bool is_new = its.planned_for != planned;
  // More than was lacking before helps nobody.
  const bool anew = is_new || shortage->lacking_bytes < its.planned_bytes ||
                    now >= its.replan_at;
  if (is_new) its.look.Forget();
  its.planned_for = planned;
  if (!state_.look_budget->MayTake()) {
    its.replan_at = now;  // the next turn goes on
    return false;
  }
  if (!its.look.under_way() && !its.look.plans_on()) {
    const uint64_t changes = state_.reclaim->gains(pool->id);
    if (!anew && !its.look.IsDue(changes, now)) return false;
    if (!state_.look_budget->MayBegin()) {
      its.replan_at = state_.look_budget->NextAfter(now);
      return false;
    }
    its.look.Begin(demand, changes);
  }
  its.replan_at = now;
  const bool looks_on =
      its.look.under_way() && !lookout_.GoOn(&its.look, pool->id, now);
  if (looks_on && !its.look.plans_on()) return false;  // the next turn does
  const quota::Plan plan = MakePlan(&its.look, demand, now).plan;
  RememberTrims(shortage->request, plan, pool);
  its.planned_bytes = shortage->lacking_bytes;
  its.replan_at = quota::Instant::Max();
  if (CarryOut(plan, now, pool, turn)) {
    its.look.PlanOn();
    its.replan_at = state_.look_budget->MayTake() ? now + kMissed : now;
    return true;
  }
  if (looks_on) {
    its.replan_at = now;
    return false;
  }
  its.look.Wait(now, its.replan_at);
  its.replan_at = its.look.next_at();
  return false;
}

// Looks at sessions that could trim cost as much as those at leases.
Look::Found Reclaimer::MakePlan(Look* look, const quota::Demand& demand,
                                quota::Instant now) {
  Look::Found found = look->MakePlan(state_, demand, now);
  Pool& pool = state_.PoolAt(demand.needs.front().pool);
  pool.plan.Edit({}).trimmers_from = found.trimmers_from;
  lookout_.Spend(found.looks);
  return found;
}

void Reclaimer::ForgetShortage(Pool* pool) {
  if (!pool->plan->planned_for.has_value() && pool->plan->trim_by.empty())
    return;
  pool->plan.Edit({}).planned_for.reset();
  pool->plan.Edit({}).look.Forget();
  ForgetTrims(pool);
  pool->plan.Edit({}).replan_at = quota::Instant::Max();
}

void Reclaimer::NoticeShortages(quota::Instant now) {
  if (state_.engine->waiting() == 0) return;
  for (const auto& [id, pool] : *state_.pools) {
    const bool idle = pool->plan->replan_at == quota::Instant::Max();
    if (idle && ShortageIn(state_, id, true).has_value())
      pool->plan.Edit({}).replan_at = now;
  }
}

void Reclaimer::WatchGates(quota::Instant now) {
  size_t leases = kMostParked;
  for (const uint64_t id : lookout_.Parked(now))
    OnParked(state_.SessionAt(id), now, &leases);
}

// Its leases may be taken now: for the requests that lack bytes, plans are made
// with them beside the finds of the last look, as long as they are few enough.
// Others are woken.
void Reclaimer::OnParked(const Session& session, quota::Instant now,
                         size_t* leases) {
  const quota::TenantId tenant = *session.tenant;
  // It may have been the last of its group: then leases of others go as well.
  const bool alone = session.group->empty();
  const bool few = session.leases->size() <= *leases;
  if (alone && few) *leases -= session.leases->size();
  for (const auto& [id, pool] : *state_.pools) {
    if (!state_.reclaim->ListedIn(id).contains(tenant)) continue;
    const uint64_t before = state_.reclaim->gains(id);
    std::vector<quota::LeaseId> its;
    if (alone && few) {
      for (const quota::LeaseId lease : *session.leases) {
        if (state_.LeaseAt(lease).request.pool == id) its.push_back(lease);
      }
      if (its.empty()) continue;
    }
    index_.MarkChanged(id, tenant);
    if (its.empty() || !pool->plan->planned_for.has_value()) continue;
    PoolPlan& plan = pool->plan.Edit({});
    const bool known = plan.look.Add(its, {before, state_.reclaim->gains(id)});
    if (known) plan.replan_at = std::min(plan.replan_at, now);
  }
}

bool Reclaimer::CarryOut(const quota::Plan& plan, quota::Instant now,
                         Pool* pool, Turn& turn) {
  bool taken = false;
  for (const quota::TrimTarget& target : plan.trims) {
    AskToTrim(target, plan.trim_deadline, turn);
  }
  for (const quota::Victim& victim : plan.victims) {
    // The rest of the plan is planned for again in the next turn.
    if (!state_.look_budget->MayTake()) break;
    if (victim.start > now) {
      pool->plan.Edit({}).replan_at =
          std::min(pool->plan->replan_at, victim.start);
    } else if (TakeVictim(victim, turn)) {
      lookout_.CountTaken();
      taken = true;
    } else {
      pool->plan.Edit({}).replan_at =
          std::min(pool->plan->replan_at, now + kMissed);
    }
  }
  pool->plan.Edit({}).replan_at =
      std::min(pool->plan->replan_at, plan.retry_at);
  return taken;
}

bool Reclaimer::TakeVictim(const quota::Victim& victim, Turn& turn) {
  const auto found = state_.leases->find(victim.lease);
  // An earlier victim's end may have changed the world.
  if (found == state_.leases->end() || found->second->life->doomed)
    return false;
  Lease* lease = found->second.get();
  switch (victim.step) {
    case quota::Step::kEvict:
      if (lease->move->residence != Residence::kResident ||
          lease->copy->copies > 0 || lease->asked()) {
        return false;
      }
      // A lease that had no room at its grant may have some now.
      if (!host_.ReserveRoom(*lease)) return false;
      if (!gates_.CloseAll(UsersOf(state_, *lease))) return false;
      mover_.StartEviction(lease, victim.deadline, victim.may_terminate, turn);
      return true;
    case quota::Step::kPause:
      if (!host_.ReserveRoom(*lease)) return false;
      gatekeeper_.StartPause(lease, victim.deadline, turn);
      return true;
    case quota::Step::kTerminate:
      return TerminateUsers(*lease, turn);
    case quota::Step::kTrim:
      return false;  // plans have these apart
  }
  return false;
}

// Those who do not answer, or refuse; where nobody does either, all of them.
bool Reclaimer::TerminateUsers(const Lease& lease, Turn& turn) {
  const quota::Instant now = turn.now();
  bool killed = false;
  for (const Mapping& mapping : lease.move->mappings) {
    if (lease.asked() && !(mapping.asked && now >= mapping.answer_by)) continue;
    if (lease.refused() && !mapping.refuses()) continue;
    killed |= sessions_.Terminate(&state_.SessionAt(mapping.session), turn);
  }
  return killed;
}

}  // namespace gmb::broker
