// Shared leases: their names, and when they end (docs/shared.md).
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/refusals.h"

namespace gmb::broker {

// The lease has ended, or will never be: nobody can attach.
void Core::EndName(quota::TenantId tenant, const PendingAcquire& request,
                   Afterwards* after) {
  const SharedName* name = shared_names_.Of(tenant, request);
  if (name == nullptr) return;
  RefuseAttaches(shared_names_.End(*name), NoSuchName(request.share_as), after);
}

// It was sealed: from now on it is its tenant's.
void Core::Share(Lease* lease, Afterwards* after) {
  const SharedName* name = shared_names_.Of(lease->tenant, lease->request);
  if (lease->shared || name == nullptr) return;
  lease->shared = true;
  shared_names_.SetLease(*name, lease->id);
  shared_leases_.insert(lease->id);
  lease->asked_back =
      engine_.RestoreOf(lease->id);  // its writer may wait for it
  Tell(quota::Shared{lease->id}, after);
  v1::Event event = NewEvent("lease_shared", lease->tenant);
  event.set_session_id(lease->request.session);
  event.set_lease_id(lease->id.value);
  event.set_device(pools_.at(lease->request.pool)->uuid());
  event.set_bytes(lease->bytes);
  event.set_message(absl::StrCat("as ", lease->request.share_as));
  deps_.events->Publish(std::move(event));
  ServeAttaches(lease, after);
}

// A session that has ended, before anything else is done: nothing leads to it
// any more.
void Core::LeaveShared(Session* session) {
  const auto is_its = [&](const Mapping& mapping) {
    return mapping.session == session->id;
  };
  for (const quota::LeaseId id : session->leases) {
    Lease* lease = leases_.at(id).get();
    if (lease->shared) std::erase_if(lease->mappings, is_its);
  }
  shared_names_.ForgetSession(session->id);
}

void Core::PublishAttached(absl::string_view kind, const Session& session,
                           const Lease& lease) const {
  v1::Event event = NewEvent(kind, lease.tenant);
  event.set_session_id(session.id);
  event.set_lease_id(lease.id.value);
  event.set_device(pools_.at(lease.request.pool)->uuid());
  event.set_bytes(lease.bytes);
  event.set_message(absl::StrCat(lease.mappings.size(), " attached to ",
                                 lease.request.share_as));
  deps_.events->Publish(std::move(event));
}

// A Map of a lease that others may be using meanwhile.
void Core::OnSharedMapped(Session* session, Lease* lease,
                          const absl::Status& failed, Afterwards* after) {
  if (!failed.ok()) AnswerMembers(session, NotBroughtBack(failed), after);
  if (!lease->asked() && lease->ForgetOverdue()) Soften(lease, after);
  if (lease->residence == Residence::kRestoring) {
    TryEndRestore(lease, after);
  } else if (!lease->asked()) {
    moving_.erase(lease->id);
  }
  AdvanceRestore(session, after);
  ServeAttaches(lease, after);
}

// The session has it no longer; it stays for those who do.
void Core::Detach(Session* session, Lease* lease, bool reuse,
                  Afterwards* after) {
  std::erase_if(lease->mappings, [&](const Mapping& mapping) {
    return mapping.session == session->id;
  });
  bool paused = false;
  for (const Session* user : UsersOf(*lease))
    paused |= pausing_.contains(user->id);
  lease->awaits_pause &= paused;
  PublishAttached("lease_detached", *session, *lease);
  if (lease->mappings.empty()) {
    if (!lease->request.keep || lease->dropped)
      return EndLease(lease->id, reuse, after);
    lease->unused_since = deps_.clock->Now();
  }
  if (lease->residence == Residence::kEvicting) {
    TryEndEviction(lease, after);
  } else if (lease->residence == Residence::kRestoring) {
    TryEndRestore(lease, after);
  } else if (!lease->asked()) {
    moving_.erase(lease->id);
  }
  // It may have been the last one that nobody could take it from.
  if (lease->residence == Residence::kResident) Soften(lease, after);
}

void Core::Drop(Session* session, uint64_t client_id, const std::string& name,
                Afterwards* after) {
  const absl::StatusOr<uint32_t> attached =
      DropName(*session->tenant, name, after);
  if (!attached.ok())
    return Refuse(session, client_id, attached.status(), after);
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  answer.mutable_dropped()->set_name(name);
  Answer(session, std::move(answer), after);
}

absl::StatusOr<uint32_t> Core::DropName(quota::TenantId tenant,
                                        const std::string& name,
                                        Afterwards* after) {
  const SharedName* found = shared_names_.Find(tenant, name);
  // One that is being made is its writer's to release.
  if (found == nullptr || !found->lease.has_value()) return NoSuchName(name);
  Lease* lease = leases_.at(*found->lease).get();
  const auto attached = static_cast<uint32_t>(lease->mappings.size());
  EndName(tenant, lease->request, after);
  lease->dropped = true;
  if (attached == 0) EndLease(lease->id, /*reuse=*/true, after);
  return attached;
}

absl::StatusOr<uint32_t> Core::DropLease(absl::string_view tenant_name,
                                         const std::string& name) {
  Afterwards after;
  absl::StatusOr<uint32_t> attached;
  {
    ipc::MutexLock lock(&mu_);
    if (stopping_) return Stopping();
    const Tenant* tenant = tenants_.Find(tenant_name);
    if (tenant == nullptr) return NoSuchTenant(tenant_name);
    attached = DropName(tenant->id, name, &after);
    if (!attached.ok()) return attached;
    Maintain(&after);
  }
  after.Run(this);
  return attached;
}

// Of a tenant that is being deleted: none outlives its sessions.
void Core::DropAll(quota::TenantId tenant, Afterwards* after) {
  const std::vector<quota::LeaseId> shared(shared_leases_.begin(),
                                           shared_leases_.end());
  for (const quota::LeaseId id : shared) {
    Lease* lease = leases_.at(id).get();
    if (lease->tenant != tenant) continue;
    EndName(tenant, lease->request, after);
    lease->dropped = true;
    if (lease->mappings.empty()) EndLease(id, /*reuse=*/false, after);
  }
}

void Core::EndKept(absl::string_view tenant_name) {
  Afterwards after;
  {
    ipc::MutexLock lock(&mu_);
    const Tenant* tenant = tenants_.Find(tenant_name);
    if (tenant == nullptr || !tenant->sessions.empty()) return;
    DropAll(tenant->id, &after);
    Maintain(&after);
  }
  after.Run(this);
}

}  // namespace gmb::broker
