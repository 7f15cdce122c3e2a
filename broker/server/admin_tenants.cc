// Operators change tenants: what is asked for is put over what is there,
// checked, stored and carried out. The former values are kept for an undo.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/server/admin_service.h"
#include "broker/server/tenant_change.h"
#include "proto/error_status.h"

namespace gmb::broker {

// The tenant's policy (of a new one, the defaults) with the request's fields
// put over it.
absl::StatusOr<TenantPolicy> AdminService::Merge(
    const v1::SetTenantRequest& request,
    const absl::StatusOr<TenantPolicy>& known) const {
  TenantPolicy policy;
  if (known.ok()) {
    policy = *known;
  } else {
    policy.name = request.name();
    policy.quota.limit = quota::Amount::Fraction(1);
  }
  std::string device;
  if (!request.device().empty()) {
    absl::StatusOr<std::string> resolved =
        core_->ResolveDevice(request.device());
    if (!resolved.ok()) return resolved.status();
    device = *std::move(resolved);
  }
  PutOver(request, device, &policy);
  return policy;
}

// The tenant's policy as it was before the last change.
absl::StatusOr<TenantPolicy> AdminService::Former(
    const v1::SetTenantRequest& request,
    const absl::StatusOr<TenantPolicy>& known) const {
  if (!known.ok()) return known.status();
  if (NamesMoreThanUndo(request)) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        "undo gives back all former values: leave the others out",
        {.field = "undo"});
  }
  const auto former = former_.find(request.name());
  if (former == former_.end()) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("there is nothing to undo: the tenant has not been "
                     "changed since it was made or the broker started: tenant=",
                     request.name()),
        {.field = "undo"});
  }
  return former->second;
}

void AdminService::OnChanged(const std::string& tenant,
                             const TenantPolicy* before) {
  dropped_.erase(tenant);
  if (before == nullptr) {
    former_.erase(tenant);
  } else {
    former_[tenant] = *before;
  }
}

absl::Status AdminService::DoSetTenant(AuditRecord audit,
                                       const v1::SetTenantRequest& request,
                                       v1::SetTenantResponse* response) {
  if (absl::Status checked = CheckQuantities(request); !checked.ok())
    return checked;
  const absl::StatusOr<TenantPolicy> known = core_->GetPolicy(request.name());
  const absl::StatusOr<TenantPolicy> policy =
      request.undo() ? Former(request, known) : Merge(request, known);
  if (!policy.ok()) return policy.status();
  if (absl::Status checked = core_->CheckTenant(*policy); !checked.ok())
    return checked;
  response->set_made(!known.ok());
  if (request.dry_run()) return ShowPreview(*policy, response);
  audit.action = "set_tenant";
  audit.subject = policy->name;
  audit.detail = request.ShortDebugString();
  const absl::Status made = Carry(audit, *policy, known.ok(), response);
  if (!made.ok()) return made;
  Settle(policy->name);
  if (!known.ok()) {
    former_.erase(policy->name);
  } else if (*known != *policy) {
    former_[policy->name] = *known;
  }
  return FillTenant(policy->name, response);
}

absl::Status AdminService::ShowPreview(const TenantPolicy& policy,
                                       v1::SetTenantResponse* response) const {
  for (v1::Change& change : core_->Preview(policy))
    *response->add_changes() = std::move(change);
  return response->made() ? absl::OkStatus()
                          : FillTenant(policy.name, response);
}

absl::Status AdminService::FillTenant(const std::string& name,
                                      v1::SetTenantResponse* response) const {
  absl::StatusOr<v1::Tenant> report = core_->TenantReport(name);
  if (!report.ok()) return report.status();
  *response->mutable_tenant() = *std::move(report);
  return absl::OkStatus();
}

// A new tenant has its sockets before it is stored.
absl::Status AdminService::Carry(const AuditRecord& audit,
                                 const TenantPolicy& policy, bool is_known,
                                 v1::SetTenantResponse* response) {
  if (!is_known) {
    if (absl::Status opened = doors_.open(policy.name); !opened.ok())
      return opened;
  }
  if (absl::Status stored = store_->PutTenant(policy, audit); !stored.ok()) {
    if (!is_known) (void)doors_.close(policy.name);
    return stored;
  }
  absl::StatusOr<std::vector<v1::Change>> changes = core_->SetTenant(policy);
  if (!changes.ok()) return changes.status();
  for (v1::Change& change : *changes)
    *response->add_changes() = std::move(change);
  return absl::OkStatus();
}

}  // namespace gmb::broker
