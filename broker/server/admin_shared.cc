// Operators drop shared leases (docs/shared.md).
#include "broker/server/admin_service.h"

namespace gmb::broker {

absl::Status AdminService::DoDropLease(AuditRecord audit,
                                       const v1::DropLeaseRequest& request,
                                       v1::DropLeaseResponse* response) {
  audit.action = "drop_lease";
  audit.subject = request.tenant();
  audit.detail = request.name();
  return store_->Audit(audit, [&] {
    const absl::StatusOr<uint32_t> attached =
        core_->DropLease(request.tenant(), request.name());
    if (attached.ok()) response->set_attached(*attached);
    return attached.status();
  });
}

grpc::ServerUnaryReactor* AdminService::DropLease(
    grpc::CallbackServerContext* context, const v1::DropLeaseRequest* request,
    v1::DropLeaseResponse* response) {
  return OnOperatorsThread(context, [=, this](const AuditRecord& audit) {
    return DoDropLease(audit, *request, response);
  });
}

}  // namespace gmb::broker
