// Shared leases: their names, and when they end (docs/shared.md).
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/machine.h"
#include "broker/machine/refusals.h"
#include "broker/machine/turn.h"

namespace gmb::broker {

// The lease has ended, or will never be: nobody can attach.
void Machine::EndName(quota::TenantId tenant, const PendingAcquire& request,
                      Turn& turn) {
  const SharedName* name = state_.shared_names.Of(tenant, request);
  if (name == nullptr) return;
  RefuseAttaches(state_.shared_names.End(*name), NoSuchName(request.share_as),
                 turn);
}

// It was sealed: from now on it is its tenant's.
void Machine::Share(Lease* lease, Turn& turn) {
  const SharedName* name =
      state_.shared_names.Of(lease->tenant, lease->request);
  if (lease->shared || name == nullptr) return;
  lease->shared = true;
  state_.shared_names.SetLease(*name, lease->id);
  state_.shared_leases.emplace(lease->tenant, lease->id);
  state_.reclaim.Touch(state_, *lease);
  // Its writer may wait for it.
  state_.asked_back.Set(*lease, state_.engine.RestoreOf(lease->id));
  Tell(quota::Shared{lease->id}, turn);
  v1::Event event = NewEvent("lease_shared", lease->tenant);
  event.set_session_id(lease->request.session);
  event.set_lease_id(lease->id.value);
  event.set_device(state_.PoolAt(lease->request.pool).uuid());
  event.set_bytes(lease->bytes);
  event.set_message(absl::StrCat("as ", lease->request.share_as));
  turn.Publish(std::move(event));
  ServeAttaches(lease, turn);
}

// A session that has ended, before anything else is done: nothing leads to it
// any more.
void Machine::LeaveShared(Session* session) {
  const auto is_its = [&](const Mapping& mapping) {
    return mapping.session == session->id;
  };
  for (const quota::LeaseId id : session->leases) {
    Lease* lease = &state_.LeaseAt(id);
    if (lease->shared) std::erase_if(lease->mappings, is_its);
  }
  state_.shared_names.ForgetSession(session->id);
}

void Machine::PublishAttached(absl::string_view kind, const Session& session,
                              const Lease& lease, Turn& turn) const {
  v1::Event event = NewEvent(kind, lease.tenant);
  event.set_session_id(session.id);
  event.set_lease_id(lease.id.value);
  event.set_device(state_.PoolAt(lease.request.pool).uuid());
  event.set_bytes(lease.bytes);
  event.set_message(absl::StrCat(lease.mappings.size(), " attached to ",
                                 lease.request.share_as));
  turn.Publish(std::move(event));
}

// A Map of a lease that others may be using meanwhile.
void Machine::OnSharedMapped(Session* session, Lease* lease,
                             const absl::Status& failed, Turn& turn) {
  if (!failed.ok()) AnswerMembers(session, NotBroughtBack(failed), turn);
  if (!lease->asked() && lease->ForgetOverdue()) Soften(lease, turn);
  state_.reclaim.Touch(state_, *lease);
  if (lease->residence == Residence::kRestoring) {
    TryEndRestore(lease, turn);
  } else if (!lease->asked()) {
    state_.moving.erase(lease->id);
  }
  AdvanceRestore(session, turn);
  ServeAttaches(lease, turn);
}

// The session has it no longer; it stays for those who do.
void Machine::Detach(Session* session, Lease* lease, bool reuse, Turn& turn) {
  std::erase_if(lease->mappings, [&](const Mapping& mapping) {
    return mapping.session == session->id;
  });
  bool paused = false;
  for (const Session* user : UsersOf(state_, *lease))
    paused |= state_.pausing.contains(user->id);
  lease->awaits_pause &= paused;
  state_.reclaim.Touch(state_, *lease);
  PublishAttached("lease_detached", *session, *lease, turn);
  if (lease->mappings.empty()) {
    if (!lease->request.keep || lease->dropped)
      return EndLease(lease->id, reuse, turn);
    lease->unused_since = turn.now();
  }
  if (lease->residence == Residence::kEvicting) {
    // It may have been the one that did not answer.
    Soften(lease, turn);
    TryEndEviction(lease, turn);
  } else if (lease->residence == Residence::kRestoring) {
    TryEndRestore(lease, turn);
  } else if (!lease->asked()) {
    state_.moving.erase(lease->id);
  }
  // It may have been the last one that nobody could take it from.
  if (lease->residence == Residence::kResident) Soften(lease, turn);
}

void Machine::Drop(Session* session, uint64_t client_id,
                   const std::string& name, Turn& turn) {
  const absl::StatusOr<uint32_t> attached =
      DropName(*session->tenant, name, turn);
  if (!attached.ok())
    return Refuse(session, client_id, attached.status(), turn);
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  answer.mutable_dropped()->set_name(name);
  Answer(session, std::move(answer), turn);
}

absl::StatusOr<uint32_t> Machine::DropName(quota::TenantId tenant,
                                           const std::string& name,
                                           Turn& turn) {
  const SharedName* found = state_.shared_names.Find(tenant, name);
  // One that is being made is its writer's to release.
  if (found == nullptr || !found->lease.has_value()) return NoSuchName(name);
  Lease* lease = &state_.LeaseAt(*found->lease);
  const auto attached = static_cast<uint32_t>(lease->mappings.size());
  EndName(tenant, lease->request, turn);
  lease->dropped = true;
  state_.reclaim.Touch(state_, *lease);
  if (attached == 0) EndLease(lease->id, /*reuse=*/true, turn);
  return attached;
}

absl::StatusOr<uint32_t> Machine::DropLease(absl::string_view tenant_name,
                                            const std::string& name,
                                            Turn& turn) {
  if (state_.stopping) return Stopping();
  const Tenant* tenant = state_.tenants.Find(tenant_name);
  if (tenant == nullptr) return NoSuchTenant(tenant_name);
  return DropName(tenant->id, name, turn);
}

// Of a tenant that is being deleted: none outlives its sessions.
void Machine::DropAll(quota::TenantId tenant, Turn& turn) {
  for (const quota::LeaseId id : SharedOf(state_, tenant)) {
    Lease* lease = &state_.LeaseAt(id);
    EndName(tenant, lease->request, turn);
    lease->dropped = true;
    state_.reclaim.Touch(state_, *lease);
    if (lease->mappings.empty()) EndLease(id, /*reuse=*/false, turn);
  }
}

void Machine::EndKept(absl::string_view tenant_name, Turn& turn) {
  const Tenant* tenant = state_.tenants.Find(tenant_name);
  if (tenant == nullptr || !tenant->sessions.empty()) return;
  DropAll(tenant->id, turn);
}

}  // namespace gmb::broker
