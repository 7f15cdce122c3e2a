// Tenants with their quotas and what they use: for `gmb tenant list`.
#include "absl/strings/str_cat.h"
#include "broker/machine/quota_view.h"
#include "broker/machine/refusals.h"
#include "broker/machine/wire_form.h"
#include "broker/report/report.h"
#include "broker/report/tenant_report.h"

namespace gmb::broker::report {

v1::Tenant OfTenant(const State& state, const Tenant& tenant) {
  v1::Tenant proto;
  proto.set_name(tenant.policy.name);
  proto.set_max_handles(tenant.policy.max_handles);
  proto.set_max_sessions(tenant.policy.max_sessions);
  for (const uint32_t uid : tenant.policy.uids) proto.add_uids(uid);
  proto.set_sessions(state.sessions->OfTenant(tenant.id).size());
  proto.set_handles(state.engine->Tenant(tenant.id)->handles);
  proto.set_has_token(!tenant.policy.token.empty());
  proto.set_socket_dir(
      absl::StrCat(state.options.tenants_dir, "/", tenant.policy.name));
  const ReclaimPolicy& reclaim = tenant.policy.reclaim;
  proto.set_may_terminate(reclaim.may_terminate);
  *proto.mutable_min_residency() = ToProto(reclaim.min_residency);
  *proto.mutable_pause_grace() = ToProto(reclaim.pause_grace);
  proto.set_host_limit_bytes(state.host_books->limit_bytes(tenant.id));
  const HostBooks::Amounts host = state.host_books->of(tenant.id);
  proto.set_host_reserved_bytes(host.reserved_bytes);
  proto.set_host_held_bytes(host.true_bytes);
  for (const auto& [id, pool] : *state.pools) {
    const quota::TenantPoolView view = *state.engine->TenantPool(tenant.id, id);
    v1::TenantPool* entry = proto.add_pools();
    *entry->mutable_quota() = ToProto(view.quota);
    *entry->mutable_view() = View(state, tenant.id, *pool);
    entry->set_borrowed_bytes(view.borrowed_bytes);
    const PutOffs::Sum put_off = state.put_off->SumOf(tenant.id, id);
    entry->set_waiting(view.waiting + put_off.requests);
    entry->set_waiting_bytes(view.waiting_bytes + put_off.bytes);
    entry->set_leases(view.leases);
    entry->set_resident_bytes(view.resident_bytes);
    entry->set_evicted_bytes(view.evicted_bytes);
    entry->set_hard_bytes(view.hard_bytes);
  }
  return proto;
}

absl::StatusOr<v1::Tenant> OfTenant(const State& state,
                                    absl::string_view name) {
  const Tenant* tenant = state.tenants->Find(name);
  if (tenant == nullptr) return NoSuchTenant(name);
  return OfTenant(state, *tenant);
}

void AddTenants(const State& state, Page* page, size_t most_rows,
                v1::ListTenantsResponse* response) {
  const Tenant* tenant = state.tenants->FindAfter(page->after);
  for (size_t rows = 0; tenant != nullptr && rows < most_rows; ++rows) {
    *response->add_tenants() = OfTenant(state, *tenant);
    page->after = tenant->policy.name;
    tenant = state.tenants->FindAfter(page->after);
  }
  page->more = tenant != nullptr;
}

}  // namespace gmb::broker::report
