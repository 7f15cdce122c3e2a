// Operators give values back to the configuration file.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/declared/merge.h"
#include "broker/declared/uids.h"
#include "broker/server/admin_tenants.h"
#include "broker/server/declared_policy.h"
#include "broker/server/field_sources.h"
#include "broker/server/seen_revision.h"
#include "proto/error_status.h"

namespace gmb::broker {

absl::Status AdminTenants::Reset(AuditRecord audit,
                                 const v1::ResetTenantRequest& request,
                                 v1::SetTenantResponse* response) {
  GMB_RETURN_IF_ERROR(CheckRevision(*store_->Shown(), request.if_revision()));
  GMB_ASSIGN_OR_RETURN(const TenantPolicy known,
                       core_->GetPolicy(request.name()));
  GMB_ASSIGN_OR_RETURN(const std::string device, Resolve(request.device()));
  Declared next = *store_->Shown();
  const auto found = next.tenants.find(request.name());
  if (found == next.tenants.end() || !found->second.in_file) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("the configuration file does not name the tenant, so "
                     "nothing can be given back to it: tenant=",
                     request.name()),
        {.field = "name"});
  }
  GMB_ASSIGN_OR_RETURN(const std::set<std::string> fields,
                       FieldsNamed(request, device, found->second));
  broker::Reset(request.name(), fields, &next);
  TenantPolicy policy = DeclaredPolicy(next, known.name, *core_);
  KeepLeftOut(DeclaredPolicy(*store_->Shown(), known.name, *core_), known,
              &policy);
  const HeldUids held = UidsInForce(next, *core_);
  (void)UidOwners(next, held).TakeOthers(&policy);
  policy.token = known.token;
  if (absl::Status checked = core_->CheckTenant(policy); !checked.ok())
    return checked;
  GMB_RETURN_IF_ERROR(CheckDeclared(known.name, *store_->Shown(), next, held));
  if (request.dry_run()) return ShowPreview(policy, response);
  audit.action = "reset_tenant";
  audit.subject = request.name();
  GMB_RETURN_IF_ERROR(store_->Change(audit, [&](Declared* declared) {
    broker::Reset(request.name(), fields, declared);
  }));
  overrides_->Await(*store_->Shown());
  GMB_ASSIGN_OR_RETURN(std::vector<v1::Change> changes,
                       core_->SetTenant(policy));
  for (v1::Change& change : changes)
    *response->add_changes() = std::move(change);
  waiting_->OnChanged(request.name());
  return FillTenant(request.name(), response);
}

}  // namespace gmb::broker
