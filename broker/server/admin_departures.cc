// The end of a tenant: at once, or once its sessions have ended.
#include "broker/server/admin_departures.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/machine/wire_form.h"
#include "broker/server/admin_audit.h"
#include "broker/server/seen_revision.h"
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

void AdminDepartures::SeeOff(const Caller& caller,
                             const v1::DeleteTenantRequest& request,
                             const AdminCalls::Finish& finish) {
  AuditRecord audit = calls_->RecordOf(caller);
  audit.action = "see_off_tenant";
  audit.subject = request.name();
  audit.detail = request.ShortDebugString();
  const absl::StatusOr<quota::TenantId> tenant = core_->IdOf(request.name());
  absl::Status may = CheckRevision(*store_->Shown(), request.if_revision());
  may.Update(tenant.status());
  if (!may.ok()) {
    return finish(
        RecordIfRefused(store_, audit, "delete_tenant", request.name(), may));
  }
  auto answer = [this, finish, name = request.name(), tenant = *tenant,
                 caller](const absl::Status& gone) {
    calls_->Post([this, finish, name, tenant, caller, gone] {
      finish(EndSeeOff(caller, name, tenant, gone));
    });
  };
  const absl::Status started = store_->Audit(audit, [&] {
    return core_->StartDeparture(request.name(), SaneWait(request.wait()),
                                 std::move(answer));
  });
  if (!started.ok()) finish(started);
}

// The sessions are gone, or why they are not. Others' changes were made since:
// the name may be that of another tenant, which this is nothing to.
absl::Status AdminDepartures::EndSeeOff(const Caller& caller,
                                        const std::string& name,
                                        quota::TenantId tenant,
                                        const absl::Status& gone) {
  const absl::StatusOr<quota::TenantId> present = core_->IdOf(name);
  if (!present.ok() || *present != tenant)
    return gone.ok() ? DeletedMeanwhile(name) : gone;
  absl::Status deleted = gone;
  if (gone.ok()) {
    deleted = Delete(calls_->RecordOf(caller), name);
    if (!deleted.ok()) core_->EndDeparture(name);
  }
  if (deleted.ok()) return deleted;
  AuditRecord audit = calls_->RecordOf(caller);
  audit.action = "tenant_stays";
  audit.subject = name;
  audit.detail = std::string(deleted.message());
  // It stays also where that cannot be written.
  store_->Audit(audit, [] { return absl::OkStatus(); }).IgnoreError();
  return deleted;
}

absl::Status AdminDepartures::Delete(AuditRecord audit, const std::string& name,
                                     uint64_t if_revision) {
  GMB_RETURN_IF_ERROR(CheckRevision(*store_->Shown(), if_revision));
  core_->EndKept(name);
  GMB_ASSIGN_OR_RETURN(const bool is_begun, core_->BeginDelete(name));
  const absl::Status closed = doors_->close(name);
  audit.action = "delete_tenant";
  audit.subject = name;
  audit.detail = closed.ok() ? "" : std::string(closed.message());
  absl::Status deleted = store_->DeleteTenant(name, audit);
  if (deleted.ok()) deleted = core_->DeleteTenant(name);
  if (deleted.ok()) {
    waiting_->Settle(name);
    return deleted;
  }
  if (is_begun) core_->EndDeparture(name);
  if (core_->GetPolicy(name).ok()) (void)doors_->open(name);
  return deleted;
}

}  // namespace gmb::broker
