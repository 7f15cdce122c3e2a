// Shared leases: their names, and when they end (docs/shared.md).
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
#include "broker/machine/recorder.h"
#include "broker/machine/refusals.h"
#include "broker/machine/sharing.h"
#include "proto/error_status.h"

namespace gmb::broker {

void Sharing::TakeName(quota::TenantId tenant, const PendingAcquire& request) {
  state_.shared_names.Edit({}).Take(tenant, request);
}

void Sharing::Adopt(Lease* lease) {
  if (lease->sharing->shared)
    state_.shared_leases.Edit({}).emplace(lease->tenant, lease->id);
  const std::string& name = lease->request.share_as;
  if (name.empty() || lease->sharing->dropped) return;
  if (state_.shared_names->Find(lease->tenant, name) != nullptr) {
    lease->sharing.Edit({}).dropped = true;
    return;
  }
  TakeName(lease->tenant, lease->request);
  if (!lease->sharing->shared) return;
  state_.shared_names.Edit({}).SetLease(
      *state_.shared_names->Of(lease->tenant, lease->request), lease->id);
}

void Sharing::EndName(quota::TenantId tenant, const PendingAcquire& request,
                      Turn& turn) {
  const SharedName* name = state_.shared_names->Of(tenant, request);
  if (name == nullptr) return;
  RefuseAttaches(state_.shared_names.Edit({}).End(*name),
                 NoSuchName(request.share_as), turn);
}

void Sharing::Seal(Session* session, uint64_t client_id, uint64_t lease_id,
                   Turn& turn) {
  Lease* lease = FindLease(state_, *session, lease_id);
  if (lease == nullptr || lease->life->state == v1::LeaseInfo::CREATING) {
    return sessions_.Refuse(session, client_id, NoSuchLease(lease_id), turn);
  }
  if (lease->sharing->shared && lease->request.session != session->id) {
    return sessions_.Refuse(
        session, client_id,
        proto::MakeError(v1::BAD_STATE, "it was sealed by who shares it"),
        turn);
  }
  if (lease->contents() != v1::PRESERVE) {
    return sessions_.Refuse(
        session, client_id,
        proto::MakeError(
            v1::BAD_STATE,
            "only a lease whose contents are PRESERVE can be sealed"),
        turn);
  }
  host_.BeforeSeal(*session, lease);
  lease->sharing.Edit({}).sealed = true;
  Recorder(state_).Touch(lease->id);
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  answer.mutable_sealed()->set_lease_id(lease_id);
  sessions_.Answer(session, std::move(answer), turn);
  if (!lease->request.share_as.empty()) Share(lease, turn);
}

// It was sealed: from now on it is its tenant's.
void Sharing::Share(Lease* lease, Turn& turn) {
  const SharedName* name =
      state_.shared_names->Of(lease->tenant, lease->request);
  if (lease->sharing->shared || name == nullptr) return;
  state_.shared_names.Edit({}).SetLease(*name, lease->id);
  MakeTenants(lease, turn);
  v1::Event event = LeaseEvent(state_, "lease_shared", *lease);
  event.set_message(absl::StrCat("as ", lease->request.share_as));
  turn.Publish(std::move(event));
  ServeAttaches(lease, turn);
}

void Sharing::MakeTenants(Lease* lease, Turn& turn) {
  lease->sharing.Edit({}).shared = true;
  state_.shared_leases.Edit({}).emplace(lease->tenant, lease->id);
  index_.Touch(lease);
  recalls_.Adopt(lease);
  quota_.Tell(quota::Shared{lease->id}, turn);
}

void Sharing::EndLease(Lease* lease, bool reuse, Turn& turn) {
  state_.shared_leases.Edit({}).erase({lease->tenant, lease->id});
  recalls_.Forget(lease);
  EndName(lease->tenant, lease->request, turn);
  leases_.EndLease(lease->id, reuse, turn);
}

std::vector<quota::LeaseId> Sharing::ForgetSession(Session* session) {
  std::vector<quota::LeaseId> left;
  if (session->leases->size() <= state_.shared_leases->size()) {
    for (const quota::LeaseId id : *session->leases) {
      if (state_.LeaseAt(id).sharing->shared) left.push_back(id);
    }
  } else if (session->tenant.has_value()) {
    left = SharedOf(state_, *session->tenant);
    std::erase_if(left, [&](quota::LeaseId id) {
      return !session->leases->contains(id);
    });
  }
  for (const quota::LeaseId id : left)
    mover_.DropUser(&state_.LeaseAt(id), session);
  state_.shared_names.Edit({}).ForgetSession(session->id);
  return left;
}

void Sharing::Leave(Session* session, Lease* lease, bool reuse, Turn& turn) {
  mover_.DropUser(lease, session);
  if (!lease->sharing->shared) return EndLease(lease, reuse, turn);
  PublishAttached(state_, "lease_detached", *session, *lease, turn);
  if (lease->move->mappings.empty()) {
    if (!lease->request.keep || lease->sharing->dropped)
      return EndLease(lease, reuse, turn);
    lease->sharing.Edit({}).unused_since = turn.now();
  }
  mover_.GoOn(lease, turn);
}

void Sharing::Drop(Session* session, uint64_t client_id,
                   const std::string& name, Turn& turn) {
  // One that the broker before this one carried out, and whose answer was lost:
  // by now the name may be another lease's.
  if (client_id > session->talk->drops_before) {
    const absl::StatusOr<uint32_t> attached =
        DropName(*session->tenant, name, turn);
    if (!attached.ok())
      return sessions_.Refuse(session, client_id, attached.status(), turn);
    sessions_.OnDropped(session, client_id);
  }
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  answer.mutable_dropped()->set_name(name);
  sessions_.Answer(session, std::move(answer), turn);
}

absl::StatusOr<uint32_t> Sharing::DropName(quota::TenantId tenant,
                                           const std::string& name,
                                           Turn& turn) {
  const SharedName* found = state_.shared_names->Find(tenant, name);
  // One that is being made is its writer's to release.
  if (found == nullptr || !found->lease.has_value()) return NoSuchName(name);
  Lease* lease = &state_.LeaseAt(*found->lease);
  const auto attached = static_cast<uint32_t>(lease->move->mappings.size());
  EndName(tenant, lease->request, turn);
  lease->sharing.Edit({}).dropped = true;
  index_.Touch(lease);
  if (attached == 0) EndLease(lease, /*reuse=*/true, turn);
  return attached;
}

// Of a tenant that is being deleted: none outlives its sessions.
void Sharing::DropAll(quota::TenantId tenant, Turn& turn) {
  for (const quota::LeaseId id : SharedOf(state_, tenant)) {
    Lease* lease = &state_.LeaseAt(id);
    EndName(tenant, lease->request, turn);
    lease->sharing.Edit({}).dropped = true;
    index_.Touch(lease);
    if (lease->move->mappings.empty()) EndLease(lease, /*reuse=*/false, turn);
  }
}

}  // namespace gmb::broker
