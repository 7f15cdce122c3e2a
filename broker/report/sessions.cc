// Sessions: for `gmb session list`.
#include <algorithm>
#include <vector>

#include "broker/machine/backed.h"
#include "broker/machine/refusals.h"
#include "broker/machine/wire_form.h"
#include "broker/report/report.h"

namespace gmb::broker::report {
namespace {

v1::SessionInfo::Gate GateState(quota::Gate gate) {
  switch (gate) {
    case quota::Gate::kOff:
      return v1::SessionInfo::GATE_OFF;
    case quota::Gate::kActive:
      return v1::SessionInfo::GATE_ACTIVE;
    case quota::Gate::kParked:
      return v1::SessionInfo::GATE_PARKED;
    case quota::Gate::kClosed:
      return v1::SessionInfo::GATE_CLOSED;
  }
  return v1::SessionInfo::GATE_UNSPECIFIED;
}

v1::SessionInfo OfSession(const State& state, const Session& session,
                          quota::Instant now) {
  v1::SessionInfo info;
  info.set_id(session.id);
  info.set_tenant(state.TenantAt(*session.tenant).policy.name);
  info.set_program(session.peer.program);
  info.set_pid(session.peer.pid);
  info.set_uid(session.peer.uid);
  *info.mutable_since() = ToProto(session.since);
  uint64_t leased = 0;
  uint64_t evicted = 0;
  uint64_t backed = 0;
  for (const quota::LeaseId id : session.leases) {
    const Lease& lease = state.LeaseAt(id);
    leased += lease.bytes;
    if (lease.residence == Residence::kEvicted) {
      evicted += lease.bytes;
    } else {
      backed += BackedBytes(state, lease);
    }
  }
  info.set_leased_bytes(leased);
  info.set_evicted_bytes(evicted);
  info.set_backed_bytes(backed);
  info.set_leases(session.leases.size());
  info.set_waiting(session.pending.size() + session.restores.size() +
                   state.shared_names.WaitingOf(session.id));
  info.set_group(session.group);
  info.set_gate(GateState(session.gate->Look(now)));
  if (session.gate->pausing_until().has_value())
    info.set_gate(v1::SessionInfo::GATE_PAUSING);
  if (const auto since = session.gate->idle_since())
    *info.mutable_idle() = ToProto(now - *since);
  return info;
}

}  // namespace

absl::StatusOr<v1::ListSessionsResponse> Sessions(const State& state,
                                                  absl::string_view tenant,
                                                  quota::Instant now) {
  const Tenant* only = state.tenants.Find(tenant);
  if (!tenant.empty() && only == nullptr) return NoSuchTenant(tenant);
  std::vector<const Session*> shown;
  for (const auto& [id, session] : state.sessions) {
    const bool wanted = only == nullptr || session->tenant == only->id;
    if (session->tenant.has_value() && wanted) shown.push_back(session.get());
  }
  std::sort(shown.begin(), shown.end(),
            [](const Session* a, const Session* b) { return a->id < b->id; });
  v1::ListSessionsResponse response;
  for (const Session* session : shown)
    *response.add_sessions() = OfSession(state, *session, now);
  return response;
}

}  // namespace gmb::broker::report
