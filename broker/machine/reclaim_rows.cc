// What the planner is told: who lacks bytes, and every lease that might give
// some.
#include "broker/machine/reclaim_rows.h"

#include <algorithm>

#include "absl/types/span.h"
#include "broker/machine/backed.h"
#include "broker/machine/lease_users.h"

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
  row->busy |= user.terminating;
  row->owed_by_process =
      std::max(row->owed_by_process, state.owed.OfProcess(user));
  row->idle_since =
      std::max(row->idle_since, user.gate->idle_since().value_or(now));
  if (mapping.asked && !user.terminating && user.peer.pidfd != nullptr)
    row->unmap_deadline = std::min(row->unmap_deadline, mapping.answer_by);
}

void AddTrims(const State& state, const Session& session, quota::Instant now,
              absl::Span<quota::LeaseRow> rows) {
  const auto row_of = [&](quota::PoolId pool) {
    return std::find_if(
        rows.begin(), rows.end(),
        [pool](const quota::LeaseRow& row) { return row.pool == pool; });
  };
  if (session.trim.has_value()) {
    const Pool* pool = state.FindPool(session.trim->device());
    if (pool == nullptr || now >= session.trim_by) return;
    const auto row = row_of(pool->id);
    const uint64_t bytes = session.trim->bytes();
    if (row != rows.end())
      row->trimming_bytes = bytes - std::min(bytes, session.trim_given_bytes);
    return;
  }
  for (const auto& [pool, bytes] : session.trimmable) {
    const auto back_off = session.trim_back_off.find(pool);
    if (back_off != session.trim_back_off.end() && now < back_off->second.until)
      continue;
    const auto row = row_of(pool);
    if (row != rows.end()) row->trimmable_bytes = bytes;
  }
}

quota::LeaseRow RowOf(const State& state, const Lease& lease,
                      quota::Instant now) {
  const Pool& pool = state.PoolAt(lease.request.pool);
  quota::LeaseRow row;
  row.lease = lease.id;
  row.tenant = lease.tenant;
  row.pool = pool.id;
  row.bytes = lease.bytes;
  row.contents = ToQuota(lease.request.contents);
  row.gate = GateOver(state, lease, now);
  row.host_room = state.host_books.HasRoom(lease.id);
  const bool may_have_room =
      lease.request.contents != v1::PRESERVE || row.host_room ||
      state.host_books.HasRoomFor(lease.tenant, lease.bytes) ||
      !pool.has_copier;
  row.evictable = pool.info.kind != device::DeviceKind::kIpc && may_have_room;
  row.backed_bytes = BackedBytes(state, lease);
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
    AddUser(state, mapping, state.SessionAt(mapping.session), now, &row);
  if (lease.shared) {
    for (const Session* user : UsersOf(state, lease))
      row.users.push_back(quota::SessionId{user->id});
  } else {
    const Session& holder = state.SessionAt(lease.request.session);
    row.session = quota::SessionId{holder.id};
    row.group = state.groups.IdOf(holder);
  }
  return row;
}

}  // namespace

ReclaimRows BuildRows(const State& state, quota::Instant now) {
  ReclaimRows rows;
  rows.leases.reserve(state.leases.size());
  for (const auto& [session_id, session] : state.sessions) {
    if (session->gate == nullptr) continue;
    const size_t first = rows.leases.size();
    for (const quota::LeaseId id : session->leases) {
      if (!state.LeaseAt(id).shared)
        rows.leases.push_back(RowOf(state, state.LeaseAt(id), now));
    }
    AddTrims(state, *session, now, absl::MakeSpan(rows.leases).subspan(first));
  }
  for (const quota::LeaseId id : state.shared_leases)
    rows.leases.push_back(RowOf(state, state.LeaseAt(id), now));
  for (const auto& [tenant_id, tenant] : state.tenants) {
    for (const auto& [pool_id, pool] : state.pools) {
      const auto view = state.engine.TenantPool(tenant_id, pool_id);
      if (!view.has_value() || view->resident_bytes == 0) continue;
      rows.tenants.push_back(
          {.tenant = tenant_id,
           .pool = pool_id,
           .guarantee_bytes = view->effective_guarantee_bytes,
           .resident_bytes = view->resident_bytes,
           .weight = view->quota.weight,
           .may_terminate = tenant.policy.reclaim.may_terminate,
           .owed_answers = state.owed.OfTenant(tenant_id),
           .min_residency = tenant.policy.reclaim.min_residency,
           .pause_grace = tenant.policy.reclaim.pause_grace});
    }
  }
  return rows;
}

quota::Plan PlanFor(const State& state, const quota::Demand& demand,
                    quota::Instant now, std::vector<quota::LeaseVerdict>* why) {
  const ReclaimRows rows = BuildRows(state, now);
  return quota::MakePlan(
      {.leases = rows.leases,
       .tenants = rows.tenants,
       .host_free_bytes = state.host_books.unreserved_bytes()},
      demand, now, state.options.planner, why);
}

uint64_t IncomingBytes(const State& state, quota::PoolId pool,
                       std::optional<quota::TenantId> tenant, bool pausing,
                       quota::Instant now) {
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
  for (const quota::LeaseId id : state.moving) {
    if (comes(state.LeaseAt(id))) add(state.LeaseAt(id));
  }
  for (const auto& [session, dead_by] : state.terminating) {
    if (now >= dead_by) continue;
    for (const quota::LeaseId id : state.SessionAt(session).leases) {
      const Lease& lease = state.LeaseAt(id);
      const bool stays =
          lease.shared &&
          (lease.mappings.size() > 1 || (lease.request.keep && !lease.dropped));
      if (stays) continue;
      if (!comes(lease) && lease.residence != Residence::kEvicted) add(lease);
    }
  }
  if (!pausing) return bytes;
  for (const uint64_t session : state.pausing) {
    for (const quota::LeaseId id : state.SessionAt(session).leases) {
      const Lease& lease = state.LeaseAt(id);
      if (lease.awaits_pause && !lease.shared) add(lease);
    }
  }
  for (const quota::LeaseId id : state.shared_leases) {
    if (state.LeaseAt(id).awaits_pause) add(state.LeaseAt(id));
  }
  return bytes;
}

std::optional<quota::Shortage> ShortageIn(const State& state,
                                          quota::PoolId pool, bool pausing,
                                          quota::Instant now) {
  return state.engine.NextShortage(
      pool, IncomingBytes(state, pool, {}, pausing, now));
}

quota::Demand DemandOf(const State& state, const quota::Shortage& shortage,
                       quota::Instant now) {
  quota::Demand demand;
  demand.cause = shortage.within_guarantee ? quota::Cause::kWithinGuarantee
                                           : quota::Cause::kBorrow;
  demand.tenant = shortage.tenant;
  demand.session = shortage.session;
  demand.group = state.groups.IdOf(state.SessionAt(shortage.session.value));
  demand.needs = {{shortage.pool, shortage.lacking_bytes}};
  demand.deadline = shortage.deadline;
  demand.collects = shortage.collects_from <= now;
  const auto& trim_by = state.PoolAt(shortage.pool).trim_by;
  const auto asked = trim_by.find(shortage.request);
  if (asked != trim_by.end()) demand.trim_by = asked->second;
  return demand;
}

}  // namespace gmb::broker
