// The end of a tenant: at once, or once its sessions have ended.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/machine/wire_form.h"
#include "broker/server/admin_service.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

absl::Status DeletedMeanwhile(absl::string_view name) {
  return proto::MakeError(
      v1::NO_SUCH_TENANT,
      absl::StrCat("somebody else deleted the tenant meanwhile; one that was "
                   "made with its name since stays: tenant=",
                   name));
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::DeleteTenant(
    grpc::CallbackServerContext* context,
    const v1::DeleteTenantRequest* request, v1::DeleteTenantResponse*) {
  if (SaneWait(request->wait()).count() == 0) {
    return OnOperatorsThread(context, [=, this](const AuditRecord& audit) {
      const absl::Status done =
          DoDeleteTenant(audit, request->name(), request->if_revision());
      if (done.ok()) return done;
      return Refused(audit, "delete_tenant", request->name(), done);
    });
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<AuthenticatedCall> call = Operator(context);
  if (!call.ok()) {
    reactor->Finish(proto::ToGrpcStatus(call.status()));
  } else {
    operators_.Post([this, reactor, request, held = Hold(*std::move(call))] {
      SeeOffAndDelete(held, *request, reactor);
    });
  }
  return reactor;
}

void AdminService::SeeOffAndDelete(const HeldCall& call,
                                   const v1::DeleteTenantRequest& request,
                                   grpc::ServerUnaryReactor* reactor) {
  AuditRecord audit = RecordOf(call->caller);
  audit.action = "see_off_tenant";
  audit.subject = request.name();
  audit.detail = request.ShortDebugString();
  const absl::StatusOr<quota::TenantId> tenant = core_->IdOf(request.name());
  absl::Status may = CheckRevision(request.if_revision());
  may.Update(tenant.status());
  if (!may.ok()) {
    may = Refused(audit, "delete_tenant", request.name(), may);
    return reactor->Finish(proto::ToGrpcStatus(may));
  }
  auto answer = [this, reactor, name = request.name(), tenant = *tenant,
                 call](const absl::Status& gone) {
    operators_.Post([this, reactor, name, tenant, call, gone] {
      reactor->Finish(proto::ToGrpcStatus(EndSeeOff(call, name, tenant, gone)));
    });
  };
  const absl::Status started = store_->Audit(audit, [&] {
    return core_->StartDeparture(request.name(), SaneWait(request.wait()),
                                 std::move(answer));
  });
  if (!started.ok()) reactor->Finish(proto::ToGrpcStatus(started));
}

// The sessions are gone, or why they are not. Others' changes were made since:
// the name may be that of another tenant, which this is nothing to.
absl::Status AdminService::EndSeeOff(const HeldCall& call,
                                     const std::string& name,
                                     quota::TenantId tenant,
                                     const absl::Status& gone) {
  const absl::StatusOr<quota::TenantId> present = core_->IdOf(name);
  if (!present.ok() || *present != tenant)
    return gone.ok() ? DeletedMeanwhile(name) : gone;
  absl::Status deleted = gone;
  if (gone.ok()) {
    deleted = DoDeleteTenant(RecordOf(call->caller), name);
    if (!deleted.ok()) core_->EndDeparture(name);
  }
  if (deleted.ok()) return deleted;
  AuditRecord audit = RecordOf(call->caller);
  audit.action = "tenant_stays";
  audit.subject = name;
  audit.detail = std::string(deleted.message());
  // It stays also where that cannot be written.
  store_->Audit(audit, [] { return absl::OkStatus(); }).IgnoreError();
  return deleted;
}

absl::Status AdminService::DoDeleteTenant(AuditRecord audit,
                                          const std::string& name,
                                          uint64_t if_revision) {
  if (absl::Status checked = CheckRevision(if_revision); !checked.ok())
    return checked;
  core_->EndKept(name);
  GMB_ASSIGN_OR_RETURN(const bool is_begun, core_->BeginDelete(name));
  const absl::Status closed = doors_.close(name);
  audit.action = "delete_tenant";
  audit.subject = name;
  audit.detail = closed.ok() ? "" : std::string(closed.message());
  absl::Status deleted = store_->DeleteTenant(name, audit);
  if (deleted.ok()) deleted = core_->DeleteTenant(name);
  if (deleted.ok()) {
    Settle(name);
    return deleted;
  }
  if (is_begun) core_->EndDeparture(name);
  if (core_->GetPolicy(name).ok()) (void)doors_.open(name);
  return deleted;
}

}  // namespace gmb::broker
