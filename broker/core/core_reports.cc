// What operators see. Nothing here changes state.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/core/core.h"
#include "broker/core/refusals.h"
#include "broker/core/wire_form.h"

namespace gmb::broker {
v1::QuotaView Core::View(quota::TenantId tenant, const Pool& pool) const {
  v1::QuotaView proto;
  proto.set_device(pool.uuid());
  proto.set_pool_bytes(engine_.Pool(pool.id)->capacity_bytes);
  const std::optional<quota::TenantPoolView> view =
      engine_.TenantPool(tenant, pool.id);
  if (!view.has_value()) return proto;
  proto.set_guarantee_bytes(view->effective_guarantee_bytes);
  proto.set_limit_bytes(view->limit_bytes);
  proto.set_weight(view->quota.weight);
  proto.set_leased_bytes(view->leased_bytes);
  proto.set_unreturned_bytes(view->unreturned_bytes);
  proto.set_obtainable_bytes(view->obtainable_bytes);
  proto.set_over_limit_bytes(view->over_limit_bytes);
  proto.set_evicted_bytes(view->evicted_bytes);
  return proto;
}

v1::PoolStatus Core::Report(const Pool& pool) const {
  const quota::PoolView view = *engine_.Pool(pool.id);
  const Composition parts = pool.slabs.composition();
  v1::PoolStatus status;
  *status.mutable_device() = ToProto(pool.info());
  status.set_target_bytes(view.target_bytes);
  status.set_capacity_bytes(parts.capacity_bytes);
  status.set_granted_bytes(parts.granted_bytes);
  status.set_returned_bytes(parts.returned_bytes);
  status.set_ready_bytes(parts.ready_bytes);
  status.set_float_bytes(parts.float_bytes);
  status.set_scrubbing_bytes(parts.scrubbing_bytes);
  status.set_unreturned_bytes(parts.unreturned_bytes);
  status.set_missing_bytes(parts.missing_bytes);
  status.set_outside_bytes(pool.reading.outside_bytes);
  const uint64_t baseline = pool.worker->baseline_bytes();
  const uint64_t headroom = baseline - std::min(baseline, parts.capacity_bytes);
  status.set_headroom_bytes(headroom);
  status.set_headroom_left_bytes(
      headroom - std::min(headroom, pool.reading.outside_bytes));
  status.set_guaranteed_bytes(view.guaranteed_bytes);
  status.set_slabs(pool.slabs.slabs());
  status.set_ready_slab_bytes(pool.slabs.options().ready_slab_bytes);
  status.set_waiting(view.waiting);
  status.set_waiting_bytes(view.waiting_bytes);
  status.set_draining(view.draining);
  status.set_problem(pool.problem);
  status.set_unreturned_outside_bytes(pool.reading.unreturned_outside_bytes);
  return status;
}

v1::GetStatusResponse Core::Status() const {
  ipc::MutexLock lock(&mu_);
  v1::GetStatusResponse status;
  status.set_broker_version(GMB_VERSION);
  *status.mutable_started() = ToProto(started_);
  status.set_draining(drain_until_.has_value());
  for (const auto& [id, pool] : pools_) *status.add_pools() = Report(*pool);
  status.set_sessions(static_cast<uint64_t>(std::count_if(
      sessions_.begin(), sessions_.end(),
      [](const auto& entry) { return entry.second->tenant.has_value(); })));
  status.set_leases(leases_.size());
  status.set_handles(engine_.handles());
  status.set_max_handles(options_.max_handles);
  status.set_tenants(tenants_.size());
  *status.mutable_host_pool() = ReportHostPool();
  return status;
}

v1::Tenant Core::Report(const Tenant& tenant) const {
  v1::Tenant proto;
  proto.set_name(tenant.policy.name);
  proto.set_max_handles(tenant.policy.max_handles);
  proto.set_max_sessions(tenant.policy.max_sessions);
  for (const uint32_t uid : tenant.policy.uids) proto.add_uids(uid);
  proto.set_sessions(tenant.sessions.size());
  proto.set_handles(engine_.Tenant(tenant.id)->handles);
  proto.set_has_token(!tenant.policy.token.empty());
  proto.set_socket_dir(
      absl::StrCat(options_.tenants_dir, "/", tenant.policy.name));
  const ReclaimPolicy& reclaim = tenant.policy.reclaim;
  proto.set_may_terminate(reclaim.may_terminate);
  *proto.mutable_min_residency() = ToProto(reclaim.min_residency);
  *proto.mutable_pause_grace() = ToProto(reclaim.pause_grace);
  proto.set_host_limit_bytes(host_books_.limit_bytes(tenant.id));
  const HostBooks::Amounts host = host_books_.of(tenant.id);
  proto.set_host_reserved_bytes(host.reserved_bytes);
  proto.set_host_held_bytes(host.true_bytes);
  for (const auto& [id, pool] : pools_) {
    const quota::TenantPoolView view = *engine_.TenantPool(tenant.id, id);
    v1::TenantPool* entry = proto.add_pools();
    *entry->mutable_quota() = ToProto(view.quota);
    *entry->mutable_view() = View(tenant.id, *pool);
    entry->set_borrowed_bytes(view.borrowed_bytes);
    entry->set_waiting(view.waiting);
    entry->set_waiting_bytes(view.waiting_bytes);
    entry->set_leases(view.leases);
    entry->set_resident_bytes(view.resident_bytes);
    entry->set_evicted_bytes(view.evicted_bytes);
    entry->set_hard_bytes(view.hard_bytes);
  }
  return proto;
}

absl::StatusOr<v1::Tenant> Core::TenantReport(absl::string_view name) const {
  ipc::MutexLock lock(&mu_);
  const Tenant* tenant = tenants_.Find(name);
  if (tenant == nullptr) return NoSuchTenant(name);
  return Report(*tenant);
}

v1::ListTenantsResponse Core::Tenants() const {
  ipc::MutexLock lock(&mu_);
  v1::ListTenantsResponse response;
  for (const Tenant* tenant : tenants_.ByName())
    *response.add_tenants() = Report(*tenant);
  return response;
}

absl::StatusOr<v1::ListSessionsResponse> Core::Sessions(
    absl::string_view tenant) const {
  ipc::MutexLock lock(&mu_);
  const Tenant* only = tenants_.Find(tenant);
  if (!tenant.empty() && only == nullptr) return NoSuchTenant(tenant);
  std::vector<const Session*> shown;
  for (const auto& [id, session] : sessions_) {
    const bool wanted = only == nullptr || session->tenant == only->id;
    if (session->tenant.has_value() && wanted) shown.push_back(session.get());
  }
  std::sort(shown.begin(), shown.end(),
            [](const Session* a, const Session* b) { return a->id < b->id; });
  v1::ListSessionsResponse response;
  for (const Session* session : shown)
    *response.add_sessions() = Report(*session);
  return response;
}

absl::StatusOr<v1::ListLeasesResponse> Core::Leases(
    absl::string_view tenant) const {
  ipc::MutexLock lock(&mu_);
  const Tenant* only = tenants_.Find(tenant);
  if (!tenant.empty() && only == nullptr) return NoSuchTenant(tenant);
  std::vector<const Lease*> shown;
  for (const auto& [id, lease] : leases_) {
    if (only == nullptr || lease->tenant == only->id)
      shown.push_back(lease.get());
  }
  std::sort(shown.begin(), shown.end(),
            [](const Lease* a, const Lease* b) { return a->id < b->id; });
  v1::ListLeasesResponse response;
  for (const Lease* lease : shown) *response.add_leases() = Report(*lease);
  return response;
}

}  // namespace gmb::broker
