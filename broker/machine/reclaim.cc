// Who lacks bytes, and the steps that are taken for him (docs/reclaim.md).
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/machine.h"
#include "broker/machine/reclaim_rows.h"
#include "broker/machine/turn.h"
#include "broker/machine/wire_form.h"
#include "quota/planner.h"

namespace gmb::broker {
namespace {

// How often a pause is looked at: its gate says nothing by itself.
constexpr quota::Nanoseconds kPauseLook = std::chrono::milliseconds(1);
constexpr uint64_t kLeasesAPoll = 1000;
// What a killed process held is waited for so long before others are asked.
constexpr quota::Nanoseconds kDyingTakes = std::chrono::seconds(1);

// While somebody lacks bytes, the gates are looked at this often: often enough
// that nobody notices, and a few hundredths of a core at most.
quota::Nanoseconds PollInterval(uint64_t leases) {
  return std::chrono::milliseconds(5) * (1 + leases / kLeasesAPoll);
}

}  // namespace

// Whether something was taken, and the next request may lack bytes beside it.
bool Machine::ServeShortage(Pool* pool, quota::Instant now, Turn& turn) {
  const auto shortage = ShortageIn(state_, pool->id, true, now);
  if (!shortage.has_value()) {
    pool->planned_for.reset();
    for (auto it = pool->trim_by.begin(); it != pool->trim_by.end();) {
      const auto entry = it++;
      if (!state_.engine.IsWaiting(entry->first)) pool->trim_by.erase(entry);
    }
    pool->replan_at = quota::Instant::Max();
    return false;
  }
  const Pool::Planned planned{shortage->request, shortage->lacking_bytes};
  if (pool->planned_for == planned && now < pool->replan_at) return false;
  pool->planned_for = planned;
  pool->replan_at = now + PollInterval(state_.leases.size());
  const quota::Plan plan =
      PlanFor(state_, DemandOf(state_, *shortage, now), now, nullptr);
  RememberTrims(shortage->request, plan, pool);
  return CarryOut(plan, now, pool, turn);
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
    } else {
      taken |= TakeVictim(victim, turn);
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
  state_.terminating[session->id] = turn.now() + kDyingTakes;
  v1::Event event = NewEvent("terminated", session->tenant);
  event.set_session_id(session->id);
  event.set_message(absl::StrCat("pid ", session->peer.pid));
  turn.Add(Kill{session->peer.pidfd});
  turn.Publish(std::move(event));
  return true;
}

quota::Instant Machine::ReclaimDue(quota::Instant now) const {
  quota::Instant due = quota::Instant::Max();
  for (const auto& [id, pool] : state_.pools)
    due = std::min(due, pool->replan_at);
  for (const StandingDemand& demand : state_.standing) {
    due = std::min(due, demand.next_look);
  }
  for (const auto& [tenant, departure] : state_.departures) {
    if (departure.done != nullptr) due = std::min(due, departure.deadline);
  }
  if (state_.options.backing.bytes_per_second > 0)
    due = std::min(due, state_.backing_at);
  if (!state_.pausing.empty()) due = std::min(due, now + kPauseLook);
  for (const auto& [session, dead_by] : state_.terminating) {
    if (now < dead_by) due = std::min(due, dead_by);
  }
  for (const quota::LeaseId id : state_.moving) {
    for (const Mapping& mapping : state_.LeaseAt(id).mappings) {
      if (mapping.asked && !mapping.overdue)
        due = std::min(due, mapping.answer_by);
    }
  }
  for (const uint64_t id : state_.waking) {
    for (const auto& [client_id, until] : state_.SessionAt(id).restores) {
      due = std::min(due, until);
    }
  }
  return std::min(due, state_.shared_names.due());
}

}  // namespace gmb::broker
