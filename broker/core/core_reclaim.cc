// Who lacks bytes, and the steps that are taken for him (docs/reclaim.md).
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/wire_form.h"
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

quota::Contents ToQuota(v1::Contents contents) {
  switch (contents) {
    case v1::DISCARD:
      return quota::Contents::kDiscard;
    case v1::RESIDENT:
      return quota::Contents::kResident;
    default:
      return quota::Contents::kPreserve;
  }
}

// Of a lease, what one who has it adds.
void AddUser(const Mapping& mapping, const Session& user, quota::Instant now,
             quota::LeaseRow* row) {
  row->busy |= user.terminating;
  row->idle_since =
      std::max(row->idle_since, user.gate->idle_since().value_or(now));
  if (mapping.asked && !user.terminating && user.peer.pidfd != nullptr)
    row->unmap_deadline = std::min(row->unmap_deadline, mapping.answer_by);
}

}  // namespace

quota::LeaseRow Core::RowOf(const Lease& lease, quota::Instant now) const {
  const Pool& pool = *pools_.at(lease.request.pool);
  quota::LeaseRow row;
  row.lease = lease.id;
  row.tenant = lease.tenant;
  row.pool = pool.id;
  row.bytes = lease.bytes;
  row.contents = ToQuota(lease.request.contents);
  row.gate = GateOver(lease, now);
  row.host_room = host_books_.HasRoom(lease.id);
  const bool may_have_room =
      lease.request.contents != v1::PRESERVE || row.host_room ||
      host_books_.HasRoomFor(lease.tenant, lease.bytes) ||
      pool.copier == nullptr;
  row.evictable = pool.info().kind != device::DeviceKind::kIpc && may_have_room;
  row.backed_bytes = BackedBytes(lease);
  row.evicted = lease.residence == Residence::kEvicted;
  row.busy = lease.residence == Residence::kEvicting ||
             lease.residence == Residence::kRestoring || lease.asked() ||
             lease.awaits_pause || lease.copies > 0 ||
             lease.state == v1::LeaseInfo::CREATING;
  row.idle_since = lease.unused_since;
  row.resident_since = lease.resident_since;
  row.restore_time = lease.restore_time;
  row.back_off_until = lease.back_off_until;
  for (const Mapping& mapping : lease.mappings)
    AddUser(mapping, *sessions_.at(mapping.session), now, &row);
  if (lease.shared) {
    for (const Session* user : UsersOf(lease))
      row.users.push_back(quota::SessionId{user->id});
  } else {
    const Session& holder = *sessions_.at(lease.request.session);
    row.session = quota::SessionId{holder.id};
    row.group = groups_.IdOf(holder);
  }
  return row;
}

Core::ReclaimRows Core::BuildRows(quota::Instant now) const {
  ReclaimRows rows;
  rows.leases.reserve(leases_.size());
  for (const auto& [session_id, session] : sessions_) {
    if (session->gate == nullptr) continue;
    const size_t first = rows.leases.size();
    for (const quota::LeaseId id : session->leases) {
      if (!leases_.at(id)->shared)
        rows.leases.push_back(RowOf(*leases_.at(id), now));
    }
    AddTrims(*session, now, absl::MakeSpan(rows.leases).subspan(first));
  }
  for (const quota::LeaseId id : shared_leases_)
    rows.leases.push_back(RowOf(*leases_.at(id), now));
  for (const auto& [tenant_id, tenant] : tenants_) {
    for (const auto& [pool_id, pool] : pools_) {
      const auto view = engine_.TenantPool(tenant_id, pool_id);
      if (!view.has_value() || view->resident_bytes == 0) continue;
      rows.tenants.push_back(
          {.tenant = tenant_id,
           .pool = pool_id,
           .guarantee_bytes = view->effective_guarantee_bytes,
           .resident_bytes = view->resident_bytes,
           .weight = view->quota.weight,
           .may_terminate = tenant.policy.reclaim.may_terminate,
           .min_residency = tenant.policy.reclaim.min_residency,
           .pause_grace = tenant.policy.reclaim.pause_grace});
    }
  }
  return rows;
}

quota::Plan Core::PlanFor(const quota::Demand& demand, quota::Instant now,
                          std::vector<quota::LeaseVerdict>* why) const {
  const ReclaimRows rows = BuildRows(now);
  return quota::MakePlan({.leases = rows.leases,
                          .tenants = rows.tenants,
                          .host_free_bytes = host_books_.unreserved_bytes()},
                         demand, now, options_.planner, why);
}

// On their way back to the pool, those of dead sessions too. `pausing`: with
// what is only to be evicted once its session's pause has taken effect.
uint64_t Core::IncomingBytes(quota::PoolId pool,
                             std::optional<quota::TenantId> tenant,
                             bool pausing) const {
  uint64_t bytes = 0;
  const auto add = [&](const Lease& lease) {
    if (lease.request.pool != pool) return;
    if (tenant.has_value() && lease.tenant != *tenant) return;
    bytes += lease.bytes;
  };
  const auto comes = [](const Lease& lease) {
    return lease.doomed ||
           (lease.residence == Residence::kEvicting && !lease.overdue());
  };
  for (const quota::LeaseId id : moving_) {
    if (comes(*leases_.at(id))) add(*leases_.at(id));
  }
  const quota::Instant now = deps_.clock->Now();
  for (const auto& [session, dead_by] : terminating_) {
    if (now >= dead_by) continue;
    for (const quota::LeaseId id : sessions_.at(session)->leases) {
      const Lease& lease = *leases_.at(id);
      const bool stays =
          lease.shared &&
          (lease.mappings.size() > 1 || (lease.request.keep && !lease.dropped));
      if (stays) continue;
      if (!comes(lease) && lease.residence != Residence::kEvicted) add(lease);
    }
  }
  if (!pausing) return bytes;
  for (const uint64_t session : pausing_) {
    for (const quota::LeaseId id : sessions_.at(session)->leases) {
      const Lease& lease = *leases_.at(id);
      if (lease.awaits_pause && !lease.shared) add(lease);
    }
  }
  for (const quota::LeaseId id : shared_leases_) {
    if (leases_.at(id)->awaits_pause) add(*leases_.at(id));
  }
  return bytes;
}

std::optional<quota::Shortage> Core::ShortageIn(quota::PoolId pool,
                                                bool pausing) const {
  return engine_.NextShortage(pool, IncomingBytes(pool, {}, pausing));
}

void Core::Reclaim(Afterwards* after) {
  const quota::Instant now = deps_.clock->Now();
  CheckOverdue(after);
  CheckPauses(after);
  ExpireRestores(after);
  ExpireAttaches(after);
  for (auto& [id, pool] : pools_) ServeShortage(pool.get(), now, after);
  ServeStanding(now, after);
  CheckDepartures(now, after);
  BackAhead(now, after);
}

quota::Demand Core::DemandOf(const quota::Shortage& shortage,
                             quota::Instant now) const {
  quota::Demand demand;
  demand.cause = shortage.within_guarantee ? quota::Cause::kWithinGuarantee
                                           : quota::Cause::kBorrow;
  demand.tenant = shortage.tenant;
  demand.session = shortage.session;
  demand.group = groups_.IdOf(*sessions_.at(shortage.session.value));
  demand.needs = {{shortage.pool, shortage.lacking_bytes}};
  demand.deadline = shortage.deadline;
  demand.collects = shortage.collects_from <= now;
  const auto& trim_by = pools_.at(shortage.pool)->trim_by;
  const auto asked = trim_by.find(shortage.request);
  if (asked != trim_by.end()) demand.trim_by = asked->second;
  return demand;
}

void Core::ServeShortage(Pool* pool, quota::Instant now, Afterwards* after) {
  // Each turn serves one request; what it takes is incoming for the next.
  for (int turn = 0; turn < 16; ++turn) {
    const auto shortage = ShortageIn(pool->id, true);
    if (!shortage.has_value()) {
      pool->planned_for.reset();
      for (auto it = pool->trim_by.begin(); it != pool->trim_by.end();) {
        const auto entry = it++;
        if (!engine_.IsWaiting(entry->first)) pool->trim_by.erase(entry);
      }
      pool->replan_at = quota::Instant::Max();
      return;
    }
    const Pool::Planned planned{shortage->request, shortage->lacking_bytes};
    if (pool->planned_for == planned && now < pool->replan_at) return;
    pool->planned_for = planned;
    pool->replan_at = now + PollInterval(leases_.size());
    const quota::Plan plan = PlanFor(DemandOf(*shortage, now), now, nullptr);
    RememberTrims(shortage->request, plan, pool);
    if (!CarryOut(plan, now, pool, after)) return;
  }
}

// Whether a victim was taken at once.
bool Core::CarryOut(const quota::Plan& plan, quota::Instant now, Pool* pool,
                    Afterwards* after) {
  bool taken = false;
  for (const quota::TrimTarget& target : plan.trims) {
    AskToTrim(target, plan.trim_deadline, after);
  }
  for (const quota::Victim& victim : plan.victims) {
    if (victim.start > now) {
      pool->replan_at = std::min(pool->replan_at, victim.start);
    } else {
      taken |= TakeVictim(victim, after);
    }
  }
  pool->replan_at = std::min(pool->replan_at, plan.retry_at);
  return taken;
}

bool Core::TakeVictim(const quota::Victim& victim, Afterwards* after) {
  const auto found = leases_.find(victim.lease);
  // An earlier victim's end may have changed the world.
  if (found == leases_.end() || found->second->doomed) return false;
  Lease* lease = found->second.get();
  switch (victim.step) {
    case quota::Step::kEvict:
      if (lease->residence != Residence::kResident || lease->copies > 0 ||
          lease->asked()) {
        return false;
      }
      // What had no room at its grant may have some now.
      if (!ReserveRoom(*lease)) return false;
      if (!CloseAll(UsersOf(*lease))) return false;
      StartEviction(lease, victim.deadline, victim.may_terminate, after);
      return true;
    case quota::Step::kPause:
      if (!ReserveRoom(*lease)) return false;
      StartPause(lease, victim.deadline, after);
      return true;
    case quota::Step::kTerminate:
      return TerminateUsers(*lease, after);
    case quota::Step::kTrim:
      return false;  // plans have these apart
  }
  return false;
}

// Those who do not answer; where nobody is asked, all of them.
bool Core::TerminateUsers(const Lease& lease, Afterwards* after) {
  const quota::Instant now = deps_.clock->Now();
  bool killed = false;
  for (const Mapping& mapping : lease.mappings) {
    if (lease.asked() && !(mapping.asked && now >= mapping.answer_by)) continue;
    killed |= Terminate(sessions_.at(mapping.session), after);
  }
  return killed;
}

// Whether it was killed now.
bool Core::Terminate(Session* session, Afterwards* after) {
  if (session->terminating || session->peer.pidfd == nullptr) return false;
  session->terminating = true;
  terminating_[session->id] = deps_.clock->Now() + kDyingTakes;
  v1::Event event = NewEvent("terminated", session->tenant);
  event.set_session_id(session->id);
  event.set_message(absl::StrCat("pid ", session->peer.pid));
  after->kill.push_back(session->peer.pidfd);
  deps_.events->Publish(std::move(event));
  return true;
}

quota::Instant Core::ReclaimDue() const {
  const quota::Instant now = deps_.clock->Now();
  quota::Instant due = quota::Instant::Max();
  for (const auto& [id, pool] : pools_) due = std::min(due, pool->replan_at);
  for (const StandingDemand& demand : standing_) {
    due = std::min(due, demand.next_look);
  }
  for (const auto& [tenant, departure] : departures_) {
    if (departure.done != nullptr) due = std::min(due, departure.deadline);
  }
  if (options_.backing.bytes_per_second > 0) due = std::min(due, backing_at_);
  if (!pausing_.empty()) due = std::min(due, now + kPauseLook);
  for (const auto& [session, dead_by] : terminating_) {
    if (now < dead_by) due = std::min(due, dead_by);
  }
  for (const quota::LeaseId id : moving_) {
    for (const Mapping& mapping : leases_.at(id)->mappings) {
      if (mapping.asked && !mapping.overdue)
        due = std::min(due, mapping.answer_by);
    }
  }
  for (const uint64_t id : waking_) {
    for (const auto& [client_id, until] : sessions_.at(id)->restores) {
      due = std::min(due, until);
    }
  }
  return std::min(due, shared_names_.due());
}

}  // namespace gmb::broker
