// The planner's view: the request that lacks bytes, and every lease that might
// give some.
#include "broker/machine/reclaim_rows.h"

#include <algorithm>
#include <utility>

#include "broker/machine/backed.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/trimmer_rows.h"

namespace gmb::broker {

namespace {

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
void AddUser(const State& state, const Mapping& mapping, const Session& user,
             quota::Instant now, quota::LeaseRow* row) {
  row->busy |= user.talk->terminating;
  row->owed_by_process =
      std::max(row->owed_by_process, state.owed->OfProcess(user));
  row->idle_since =
      std::max(row->idle_since, user.gate->idle_since().value_or(now));
  row->coming_until = std::max(row->coming_until, user.waking->coming_until);
  row->let_in_until = std::max(row->let_in_until, user.waking->let_in_until);
  // All of a group were paused, and are spared, together.
  row->no_pause_until =
      std::max(row->no_pause_until, user.gate->not_paused_before());
  const quota::Nanoseconds gap =
      user.gate->usual_gap().value_or(quota::Nanoseconds(0));
  if (row->usual_gap == quota::Nanoseconds(0) ||
      (gap > quota::Nanoseconds(0) && gap < row->usual_gap)) {
    row->usual_gap = gap;
  }
  if (mapping.asked && !user.talk->terminating && user.can_be_killed())
    row->unmap_deadline = std::min(row->unmap_deadline, mapping.answer_by);
}

// A client that refuses has had its time since the first refusal. Where policy
// spares its process, it is asked again.
void AddRefusals(const State& state, const Lease& lease, quota::LeaseRow* row) {
  const Tenant* tenant = state.tenants->Find(lease.tenant);
  if (!lease.refused() || tenant == nullptr ||
      !tenant->policy.reclaim.may_terminate) {
    return;
  }
  for (const Mapping& mapping : lease.move->mappings) {
    const Session& user = state.SessionAt(mapping.session);
    if (!mapping.refuses() || user.talk->terminating || !user.can_be_killed()) {
      continue;
    }
    row->unmap_deadline = std::min(row->unmap_deadline, mapping.refused_since);
  }
}

// Those that have not ended meanwhile.
void AddLeases(const State& state, const std::vector<quota::LeaseId>& leases,
               quota::Instant now, ReclaimRows* rows) {
  GroupGates groups;
  for (const quota::LeaseId id : leases) {
    const auto lease = state.leases->find(id);
    if (lease != state.leases->end() && lease->second->reclaim->listed)
      rows->leases.push_back(RowOf(state, *lease->second, now, &groups));
  }
}

// Once each, in their order, of the leases that are there.
void AddTenants(const State& state, ReclaimRows* rows) {
  std::vector<std::pair<quota::TenantId, quota::PoolId>> keys;
  keys.reserve(rows->leases.size());
  for (const quota::LeaseRow& row : rows->leases)
    keys.emplace_back(row.tenant, row.pool);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (const auto& [tenant, pool] : keys) {
    const quota::TenantRow row = TenantRowOf(state, tenant, pool);
    if (row.resident_bytes > 0) rows->tenants.push_back(row);
  }
}

}  // namespace

quota::LeaseRow RowOf(const State& state, const Lease& lease,
                      quota::Instant now, GroupGates* groups) {
  const Pool& pool = state.PoolAt(lease.request.pool);
  quota::LeaseRow row;
  row.lease = lease.id;
  row.tenant = lease.tenant;
  row.pool = pool.id;
  row.bytes = lease.bytes;
  row.contents = ToQuota(lease.contents());
  row.sealed = lease.sharing->sealed;
  row.gate = GateOver(state, lease, now, groups);
  row.host_room = state.host_books->HasRoom(lease.id);
  row.no_room = lease.contents() == v1::PRESERVE && !row.host_room &&
                !state.host_books->HasRoomFor(lease.tenant, lease.bytes);
  row.evictable = pool.info.kind != device::DeviceKind::kIpc;
  row.backed_bytes = BackedBytes(state, lease);
  row.evicted = lease.move->residence == Residence::kEvicted;
  row.busy = lease.move->residence == Residence::kEvicting ||
             lease.move->residence == Residence::kRestoring || lease.asked() ||
             *lease.awaits_pause || lease.copy->copies > 0 ||
             lease.life->state == v1::LeaseInfo::CREATING;
  row.idle_since = lease.sharing->unused_since;
  row.resident_since = lease.move->resident_since;
  row.restore_time = lease.move->restore_time;
  row.back_off_until = lease.copy->back_off_until;
  for (const Mapping& mapping : lease.move->mappings)
    AddUser(state, mapping, state.SessionAt(mapping.session), now, &row);
  AddRefusals(state, lease, &row);
  if (lease.sharing->shared) {
    for (const Session* user : UsersOf(state, lease))
      row.users.push_back(quota::SessionId{user->id});
  } else {
    const Session& holder = state.SessionAt(lease.request.session);
    row.session = quota::SessionId{holder.id};
    row.session_bytes = *holder.leased_bytes;
    row.group = GroupOf(state, holder);
  }
  return row;
}

quota::TenantRow TenantRowOf(const State& state, quota::TenantId tenant,
                             quota::PoolId pool) {
  quota::TenantRow row{.tenant = tenant, .pool = pool};
  const auto holding = state.engine->HoldingOf(tenant, pool);
  const Tenant* known = state.tenants->Find(tenant);
  if (!holding.has_value() || known == nullptr) return row;
  const ReclaimPolicy& policy = known->policy.reclaim;
  row.guarantee_bytes = holding->guarantee_bytes;
  row.resident_bytes = holding->resident_bytes;
  row.weight = holding->weight;
  row.may_terminate = policy.may_terminate;
  row.owed_answers = state.owed->OfTenant(tenant);
  row.min_residency = policy.min_residency;
  row.pause_grace = policy.pause_grace;
  return row;
}

ReclaimRows RowsOf(const State& state,
                   const std::vector<quota::LeaseId>& leases,
                   quota::Instant now) {
  ReclaimRows rows;
  AddLeases(state, leases, now, &rows);
  AddTenants(state, &rows);
  return rows;
}

PlanMade PlanAmong(const State& state, const quota::Demand& demand,
                   quota::Instant now, const Candidates& candidates,
                   std::vector<quota::LeaseVerdict>* why) {
  const quota::PoolId pool = demand.needs.front().pool;
  ReclaimRows rows;
  AddLeases(state, candidates.leases, now, &rows);
  TrimmerRows trimmers(state, pool, now, &rows.leases);
  trimmers.Add(demand, state.PoolAt(pool).plan->trimmers_from);
  AddTenants(state, &rows);
  quota::Plan plan =
      quota::MakePlan({.leases = rows.leases,
                       .tenants = rows.tenants,
                       .host_free_bytes = state.host_books->unreserved_bytes(),
                       .beyond_bytes = candidates.beyond_bytes,
                       .later_bytes = candidates.later_bytes},
                      demand, now, state.options.planner, why);
  return {.plan = std::move(plan),
          .looks = trimmers.looks(),
          .trimmers_from = trimmers.next()};
}

std::optional<quota::Shortage> ShortageIn(const State& state,
                                          quota::PoolId pool, bool pausing) {
  return state.engine->NextShortage(
      pool, state.reclaim->IncomingBytes(pool, {}, pausing));
}

quota::Demand DemandOf(const State& state, const quota::Shortage& shortage,
                       quota::Instant now) {
  quota::Demand demand;
  demand.cause = shortage.within_guarantee ? quota::Cause::kWithinGuarantee
                                           : quota::Cause::kBorrow;
  demand.tenant = shortage.tenant;
  demand.session = shortage.session;
  demand.group = GroupOf(state, state.SessionAt(shortage.session.value));
  demand.needs = {{shortage.pool, shortage.lacking_bytes}};
  demand.deadline = shortage.deadline;
  demand.collects = shortage.collects_from <= now;
  const auto& trim_by = state.PoolAt(shortage.pool).plan->trim_by;
  const auto asked = trim_by.find(shortage.request);
  if (asked != trim_by.end()) demand.trim_by = asked->second;
  return demand;
}

}  // namespace gmb::broker
