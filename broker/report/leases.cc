// Leases: for `gmb lease list`.
#include "broker/machine/backed.h"
#include "broker/machine/refusals.h"
#include "broker/machine/wire_form.h"
#include "broker/report/report.h"

namespace gmb::broker::report {
namespace {

v1::LeaseInfo::State StateOf(const Lease& lease) {
  switch (lease.move->residence) {
    case Residence::kEvicting:
      return v1::LeaseInfo::EVICTING;
    case Residence::kEvicted:
      return v1::LeaseInfo::EVICTED;
    case Residence::kRestoring:
      return v1::LeaseInfo::RESTORING;
    case Residence::kResident:
      return lease.life->state;
  }
  return lease.life->state;
}

v1::LeaseInfo OfLease(const State& state, const Lease& lease) {
  v1::LeaseInfo info;
  info.set_id(lease.id.value);
  // A kept lease outlives its writer.
  if (state.sessions->Find(lease.request.session) != nullptr)
    info.set_session_id(lease.request.session);
  info.set_tenant(state.TenantAt(lease.tenant).policy.name);
  info.set_device(state.PoolAt(lease.request.pool).uuid());
  info.set_bytes(lease.bytes);
  info.set_slabs(static_cast<uint32_t>(lease.held->slabs.size()));
  info.set_contents(lease.contents());
  info.set_state(StateOf(lease));
  *info.mutable_since() = ToProto(lease.life->since);
  const auto view = state.engine->Lease(lease.id);
  info.set_hard(view.has_value() && view->hard && !view->evicted);
  info.set_backed(IsBacked(state, lease));
  info.set_sealed(lease.sharing->sealed);
  info.set_share_name(lease.request.share_as);
  info.set_attached(lease.sharing->shared
                        ? static_cast<uint32_t>(lease.move->mappings.size())
                        : 0);
  info.set_keep(lease.request.keep && !lease.sharing->dropped);
  info.set_dropped(lease.sharing->dropped);
  return info;
}

}  // namespace

absl::Status AddLeases(const State& state, absl::string_view tenant, Page* page,
                       size_t most_rows, v1::ListLeasesResponse* response) {
  const Tenant* only = state.tenants->Find(tenant);
  if (!tenant.empty() && only == nullptr) return NoSuchTenant(tenant);
  size_t rows = 0;
  size_t looks = 0;
  auto it = state.leases->upper_bound(quota::LeaseId{NumberIn(page->after)});
  for (; it != state.leases->end(); ++it) {
    if (rows == most_rows || looks == kLooksASlice) return absl::OkStatus();
    ++looks;
    page->after = KeyOf({it->first.value});
    if (only != nullptr && it->second->tenant != only->id) continue;
    *response->add_leases() = OfLease(state, *it->second);
    ++rows;
  }
  page->more = false;
  return absl::OkStatus();
}

}  // namespace gmb::broker::report
