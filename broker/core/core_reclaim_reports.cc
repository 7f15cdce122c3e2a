// What operators see of reclaim: the host pool, sessions' gates, leases, and
// why a step is or is not taken.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/core/core.h"
#include "broker/core/wire_form.h"
#include "device/host_pool.h"
#include "device/pool_mapping.h"
#include "proto/amount_text.h"

namespace gmb::broker {
namespace {

v1::LeaseInfo::State StateOf(const Lease& lease) {
  switch (lease.residence) {
    case Residence::kEvicting:
      return v1::LeaseInfo::EVICTING;
    case Residence::kEvicted:
      return v1::LeaseInfo::EVICTED;
    case Residence::kRestoring:
      return v1::LeaseInfo::RESTORING;
    case Residence::kResident:
      return lease.state;
  }
  return lease.state;
}

v1::SessionInfo::Gate ToProto(quota::Gate gate) {
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

void AddFinding(v1::Finding::Severity severity, const std::string& subject,
                std::string message, v1::DiagnoseResponse* response) {
  v1::Finding* finding = response->add_findings();
  finding->set_severity(severity);
  finding->set_subject(subject);
  finding->set_message(std::move(message));
}

}  // namespace

v1::HostPoolStatus Core::ReportHostPool() const {
  v1::HostPoolStatus status;
  if (deps_.host_pool == nullptr) return status;
  const device::HostPool::Progress progress = deps_.host_pool->progress();
  status.set_bytes(progress.bytes);
  status.set_prepared_bytes(progress.prepared_bytes);
  status.set_locked_bytes(progress.locked_bytes);
  status.set_failed_bytes(progress.failed_bytes);
  status.set_done(progress.done);
  status.set_problem(progress.problem);
  status.set_pages(device::PageKindName(deps_.host_pool->page_kind()));
  const HostBooks::Amounts& books = host_books_.total();
  status.set_reserved_bytes(books.reserved_bytes);
  status.set_placed_bytes(books.placed_bytes);
  status.set_held_bytes(books.true_bytes);
  return status;
}

v1::SessionInfo Core::Report(const Session& session) const {
  v1::SessionInfo info;
  info.set_id(session.id);
  info.set_tenant(tenants_.at(*session.tenant).policy.name);
  info.set_program(session.peer.program);
  info.set_pid(session.peer.pid);
  info.set_uid(session.peer.uid);
  *info.mutable_since() = broker::ToProto(session.since);
  uint64_t leased = 0;
  uint64_t evicted = 0;
  uint64_t backed = 0;
  for (const quota::LeaseId id : session.leases) {
    const Lease& lease = *leases_.at(id);
    leased += lease.bytes;
    if (lease.residence == Residence::kEvicted) {
      evicted += lease.bytes;
    } else {
      backed += BackedBytes(lease);
    }
  }
  info.set_leased_bytes(leased);
  info.set_evicted_bytes(evicted);
  info.set_backed_bytes(backed);
  info.set_leases(session.leases.size());
  info.set_waiting(session.pending.size() + session.restores.size() +
                   shared_names_.WaitingOf(session.id));
  info.set_streaming(session.outbox->streaming());
  info.set_group(session.group);
  const quota::Instant now = deps_.clock->Now();
  info.set_gate(ToProto(session.gate->Look(now)));
  if (session.gate->pausing_until().has_value())
    info.set_gate(v1::SessionInfo::GATE_PAUSING);
  if (const auto since = session.gate->idle_since())
    *info.mutable_idle() = broker::ToProto(now - *since);
  return info;
}

v1::LeaseInfo Core::Report(const Lease& lease) const {
  v1::LeaseInfo info;
  info.set_id(lease.id.value);
  // What is kept outlives its writer.
  if (sessions_.Find(lease.request.session) != nullptr)
    info.set_session_id(lease.request.session);
  info.set_tenant(tenants_.at(lease.tenant).policy.name);
  info.set_device(pools_.at(lease.request.pool)->uuid());
  info.set_bytes(lease.bytes);
  info.set_slabs(static_cast<uint32_t>(lease.slabs.size()));
  info.set_contents(lease.request.contents);
  info.set_state(StateOf(lease));
  *info.mutable_since() = broker::ToProto(lease.since);
  const auto view = engine_.Lease(lease.id);
  info.set_hard(view.has_value() && view->hard && !view->evicted);
  info.set_backed(IsBacked(lease));
  info.set_sealed(lease.sealed);
  info.set_share_name(lease.request.share_as);
  info.set_attached(lease.shared ? static_cast<uint32_t>(lease.mappings.size())
                                 : 0);
  info.set_keep(lease.request.keep && !lease.dropped);
  info.set_dropped(lease.dropped);
  return info;
}

void Core::AddReclaimFindings(const Tenant& tenant, const Pool& pool,
                              v1::ExplainResponse* response) const {
  const auto shortage = ShortageIn(pool.id, true);
  if (!shortage.has_value() || shortage->tenant != tenant.id) return;
  const quota::Instant now = deps_.clock->Now();
  std::vector<quota::LeaseVerdict> why;
  const quota::Plan plan = PlanFor(DemandOf(*shortage, now), now, &why);
  response->add_findings(absl::StrCat(
      pool.uuid(), ": ", proto::FormatBytes(shortage->lacking_bytes),
      " have to be taken from others; reclaim ",
      plan.empty()
          ? std::string("finds nothing that it may take now")
          : absl::StrCat("can take ", proto::FormatBytes(plan.planned_bytes))));
  for (const std::string& sentence : VerdictSentences(why, std::nullopt)) {
    response->add_findings(absl::StrCat(pool.uuid(), ": ", sentence));
  }
}

void Core::AddReclaimDiagnosis(v1::DiagnoseResponse* response) const {
  const v1::HostPoolStatus host_pool = ReportHostPool();
  if (!host_pool.problem().empty()) {
    AddFinding(v1::Finding::WARNING, "host pool", host_pool.problem(),
               response);
  } else if (host_pool.bytes() == 0) {
    AddFinding(v1::Finding::OK, "host pool",
               "there is none, so that leases whose contents are to be kept "
               "stay on the device; --host-pool SIZE changes that",
               response);
  } else {
    AddFinding(
        v1::Finding::OK, "host pool",
        absl::StrCat(proto::FormatBytes(host_pool.reserved_bytes()), " of ",
                     proto::FormatBytes(host_pool.bytes()), " are reserved"),
        response);
  }
  for (const auto& [id, session] : sessions_) {
    if (!session->tenant.has_value() || session->peer.pidfd != nullptr)
      continue;
    const TenantPolicy& policy = tenants_.at(*session->tenant).policy;
    if (!policy.reclaim.may_terminate) continue;
    AddFinding(v1::Finding::WARNING, policy.name,
               absl::StrCat("session ", id,
                            " may be terminated, but the broker has no handle "
                            "on its process: share its PID namespace"),
               response);
  }
}

}  // namespace gmb::broker
