// Sessions: for `gmb session list`.
#include <optional>

#include "broker/machine/backed.h"
#include "broker/machine/refusals.h"
#include "broker/machine/wire_form.h"
#include "broker/report/report.h"
#include "broker/report/session_gate_state.h"

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
                          const SessionSums& sums, quota::Instant now) {
  v1::SessionInfo info;
  info.set_id(session.id);
  info.set_tenant(state.TenantAt(*session.tenant).policy.name);
  info.set_program(session.peer.program);
  info.set_pid(session.peer.pid);
  info.set_uid(session.peer.uid);
  *info.mutable_since() = ToProto(session.since);
  info.set_leased_bytes(sums.leased_bytes);
  info.set_evicted_bytes(sums.evicted_bytes);
  info.set_backed_bytes(sums.backed_bytes);
  info.set_leases(session.leases->size());
  info.set_waiting(session.talk->pending.size() +
                   session.waking->restores.size() +
                   state.shared_names->WaitingOf(session.id));
  info.set_group(*session.group);
  info.set_never_lends(*session.never_lends);
  info.set_gate(GateStateOf(session, now));
  if (const auto since = session.gate->idle_since())
    *info.mutable_idle() = ToProto(now - *since);
  if (const auto gap = session.gate->usual_gap())
    *info.mutable_usual_gap() = ToProto(*gap);
  if (const auto use = session.gate->usual_use())
    *info.mutable_usual_use() = ToProto(*use);
  return info;
}

// The one after that id, of the tenant or, with null, of all, operators' too;
// null: there is none.
const Session* NextSession(const State& state, const Tenant* only,
                           uint64_t after) {
  if (only == nullptr) return state.sessions->FindAfter(after);
  const auto& its = state.sessions->OfTenant(only->id);
  const auto it = its.upper_bound(after);
  return it == its.end() ? nullptr : state.sessions->Find(*it);
}

// Adds up leases of the session after those that were, at most as many as may
// still be looked at. False: there are more of them.
bool AddUp(const State& state, const Session& session, size_t* looks,
           SessionSums* sums) {
  if (sums->session != session.id) *sums = {.session = session.id};
  auto it = session.leases->upper_bound(sums->last);
  for (; it != session.leases->end() && *looks < kLooksASlice; ++it, ++*looks) {
    const Lease& lease = state.LeaseAt(*it);
    sums->last = *it;
    sums->leased_bytes += lease.bytes;
    if (lease.move->residence == Residence::kEvicted) {
      sums->evicted_bytes += lease.bytes;
    } else {
      sums->backed_bytes += BackedBytes(state, lease);
    }
  }
  return it == session.leases->end();
}

}  // namespace

v1::SessionInfo::Gate GateStateOf(const Session& session, quota::Instant now) {
  const v1::SessionInfo::Gate state = GateState(session.gate->Look(now));
  return session.gate->pausing_until().has_value()
             ? v1::SessionInfo::GATE_PAUSING
             : state;
}

absl::Status AddSessions(const State& state, absl::string_view tenant,
                         quota::Instant now, Page* page, size_t most_rows,
                         SessionSums* sums,
                         v1::ListSessionsResponse* response) {
  const Tenant* only = state.tenants->Find(tenant);
  if (!tenant.empty() && only == nullptr) return NoSuchTenant(tenant);
  size_t rows = 0;
  size_t looks = 0;
  for (;;) {
    const Session* session = NextSession(state, only, NumberIn(page->after));
    page->more = session != nullptr;
    if (!page->more || rows == most_rows || looks >= kLooksASlice)
      return absl::OkStatus();
    ++looks;
    if (session->tenant.has_value()) {
      if (!AddUp(state, *session, &looks, sums)) return absl::OkStatus();
      *response->add_sessions() = OfSession(state, *session, *sums, now);
      ++rows;
    }
    page->after = KeyOf({session->id});
  }
}

}  // namespace gmb::broker::report
