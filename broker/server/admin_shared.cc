// Operators drop shared leases (docs/shared.md).
#include <algorithm>
#include <string>

#include "broker/core/refusals.h"
#include "broker/server/admin_service.h"

namespace gmb::broker {
namespace {

// Whether the tenant has a shared lease of this name. A session of it may drop
// it, or be the last to leave it, before the operator does; that is then
// refused, and in the audit.
absl::Status CheckDrop(const Core& core, const v1::DropLeaseRequest& request) {
  // In a list, no tenant stands for all of them.
  const absl::Status known = core.GetPolicy(request.tenant()).status();
  if (!known.ok()) return known;
  const absl::StatusOr<v1::ListLeasesResponse> list =
      core.Leases(request.tenant());
  if (!list.ok()) return list.status();
  const bool there =
      std::any_of(list->leases().begin(), list->leases().end(),
                  [&](const v1::LeaseInfo& lease) {
                    const bool stays = lease.keep() || lease.attached() > 0;
                    return lease.share_name() == request.name() &&
                           lease.sealed() && stays && !lease.dropped();
                  });
  return there ? absl::OkStatus() : NoSuchName(request.name());
}

}  // namespace

absl::Status AdminService::DoDropLease(AuditRecord audit,
                                       const v1::DropLeaseRequest& request,
                                       v1::DropLeaseResponse* response) {
  if (absl::Status checked = CheckDrop(*core_, request); !checked.ok())
    return checked;
  audit.action = "drop_lease";
  audit.subject = request.tenant();
  audit.detail = request.name();
  if (absl::Status stored = store_->Audit(audit); !stored.ok()) return stored;
  const absl::StatusOr<uint32_t> attached =
      core_->DropLease(request.tenant(), request.name());
  if (!attached.ok()) return attached.status();
  response->set_attached(*attached);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::DropLease(
    grpc::CallbackServerContext* context, const v1::DropLeaseRequest* request,
    v1::DropLeaseResponse* response) {
  return OnOperatorsThread(context, [=, this](const AuditRecord& audit) {
    return DoDropLease(audit, *request, response);
  });
}

}  // namespace gmb::broker
