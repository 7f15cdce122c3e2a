// The end of a tenant: at once, or once its sessions have ended.
#include <string>
#include <utility>

#include "broker/core/wire_form.h"
#include "broker/server/admin_service.h"
#include "proto/error_status.h"

namespace gmb::broker {

grpc::ServerUnaryReactor* AdminService::DeleteTenant(
    grpc::CallbackServerContext* context,
    const v1::DeleteTenantRequest* request, v1::DeleteTenantResponse*) {
  if (SaneWait(request->wait()).count() == 0) {
    return OnOperatorsThread(context, [=, this](const AuditRecord& audit) {
      return DoDeleteTenant(audit, request->name());
    });
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<AuthenticatedCall> call = Operator(context);
  if (!call.ok()) {
    reactor->Finish(proto::ToGrpcStatus(call.status()));
  } else {
    SeeOffAndDelete(*request, reactor, Hold(*std::move(call)));
  }
  return reactor;
}

void AdminService::SeeOffAndDelete(const v1::DeleteTenantRequest& request,
                                   grpc::ServerUnaryReactor* reactor,
                                   const HeldCall& call) {
  core_->StartDeparture(
      request.name(), SaneWait(request.wait()),
      [this, reactor, name = request.name(), call](const absl::Status& gone) {
        if (!gone.ok()) return reactor->Finish(proto::ToGrpcStatus(gone));
        operators_.Post([this, reactor, name, call] {
          AuditRecord audit;
          audit.at = clock_->WallTime();
          audit.operator_name = call->caller.name;
          const absl::Status deleted = DoDeleteTenant(std::move(audit), name);
          if (!deleted.ok()) core_->EndDeparture(name);
          reactor->Finish(proto::ToGrpcStatus(deleted));
        });
      });
}

absl::Status AdminService::DoDeleteTenant(AuditRecord audit,
                                          const std::string& name) {
  core_->EndKept(name);
  if (absl::Status checked = core_->CheckDeleteTenant(name); !checked.ok())
    return checked;
  // Closed first, so that no new session of the tenant comes while it goes.
  const absl::Status closed = doors_.close(name);
  audit.action = "delete_tenant";
  audit.subject = name;
  audit.detail = closed.ok() ? "" : std::string(closed.message());
  absl::Status deleted = core_->CheckDeleteTenant(name);
  if (deleted.ok()) deleted = store_->DeleteTenant(name, audit);
  if (deleted.ok()) deleted = core_->DeleteTenant(name);
  if (!deleted.ok() && core_->GetPolicy(name).ok()) (void)doors_.open(name);
  return deleted;
}

}  // namespace gmb::broker
