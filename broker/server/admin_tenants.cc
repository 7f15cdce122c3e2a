// Operators change tenants: what is asked for is put over what is there,
// checked, stored and carried out. An undo asks for the former values.
#include "broker/server/admin_tenants.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/declared/conflict.h"
#include "broker/declared/merge.h"
#include "broker/server/declared_policy.h"
#include "broker/server/field_sources.h"
#include "broker/server/seen_revision.h"
#include "broker/server/tenant_change.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// Of a guarantee above a limit the caller may have written one alone: says who
// wrote the other. `next`: what would be declared.
absl::Status NamingSources(const absl::Status& refused, const std::string& name,
                           const Declared& next) {
  const auto detail = proto::GetErrorDetail(refused);
  const auto declared = next.tenants.find(name);
  const std::string sources =
      declared == next.tenants.end() ? "" : DifferentSources(declared->second);
  if (sources.empty() || !detail.has_value() ||
      detail->reason() != v1::BAD_REQUEST || detail->field() != "guarantee")
    return refused;
  return proto::MakeError(
      detail->reason(), absl::StrCat(refused.message(), ": ", sources),
      {.deficit_bytes = detail->deficit_bytes(), .field = detail->field()});
}

std::set<std::string> NamedBy(const v1::SetTenantRequest& request,
                              const std::string& device,
                              const Declared& declared) {
  const auto found = declared.tenants.find(request.name());
  return FieldsNamed(
      request, device,
      found == declared.tenants.end() ? Subject() : found->second);
}

// Writes what the request makes of the tenant, `policy`, into `declared`.
// `device`: its UUID.
void Write(const AuditRecord& audit, const TenantPolicy& policy,
           const v1::SetTenantRequest& request, const std::string& device,
           Declared* declared) {
  const std::set<std::string> named = NamedBy(request, device, *declared);
  Fields fields = FieldsOf(policy);
  if (!request.has_lasts()) {
    WriteFields(policy.name, fields,
                {Source::Writer::kOperator, audit.operator_name}, audit.at,
                declared, named);
    return;
  }
  std::erase_if(
      fields, [&](const auto& field) { return !named.contains(field.first); });
  WriteUntil(policy.name, fields,
             {Source::Writer::kOverride, audit.operator_name}, audit.at,
             audit.at + absl::Seconds(request.lasts().seconds()) +
                 absl::Nanoseconds(request.lasts().nanos()),
             declared);
}

}  // namespace

absl::Status CheckDeclared(const std::string& tenant, const Declared& before,
                           const Declared& next, const HeldUids& held) {
  const absl::Status later = CheckConflictsToCome(tenant, before, next);
  if (!later.ok()) {
    return proto::MakeError(v1::BAD_REQUEST, later.message(),
                            {.field = "guarantee"});
  }
  const absl::Status uids = CheckUids(before, next, held);
  if (uids.ok()) return uids;
  return proto::MakeError(v1::BAD_REQUEST, uids.message(), {.field = "uids"});
}

// The tenant's policy (of a new one, the defaults) with the request's fields
// put over it. So what it does not name stays declared, also where it is left out.
absl::StatusOr<AdminTenants::Wanted> AdminTenants::Merge(
    const v1::SetTenantRequest& request,
    const absl::StatusOr<TenantPolicy>& known) const {
  Wanted wanted;
  if (known.ok()) {
    const std::shared_ptr<const Declared> all = store_->Shown();
    wanted.in_force = *known;
    wanted.declared = all->tenants.contains(request.name())
                          ? DeclaredPolicy(*all, request.name(), *core_)
                          : *known;
  } else {
    wanted.in_force.name = request.name();
    wanted.in_force.quota.limit = quota::Amount::Fraction(1);
    wanted.declared = wanted.in_force;
  }
  GMB_ASSIGN_OR_RETURN(const std::string device, Resolve(request.device()));
  PutOver(request, device, &wanted.declared);
  PutOver(request, device, &wanted.in_force);
  return wanted;
}

absl::StatusOr<std::string> AdminTenants::Resolve(
    const std::string& device) const {
  return device.empty() ? device : core_->ResolveDevice(device);
}

// The tenant's policy as it was before the last change.
absl::StatusOr<AdminTenants::Wanted> AdminTenants::Former(
    const v1::SetTenantRequest& request,
    const absl::StatusOr<TenantPolicy>& known) const {
  if (!known.ok()) return known.status();
  if (NamesMoreThanUndo(request)) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        "undo gives back all former values: leave the others out",
        {.field = "undo"});
  }
  std::optional<TenantPolicy> former =
      FormerPolicy(*store_->Shown(), request.name(), *core_);
  if (!former.has_value()) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("there is nothing to undo: the tenant has not been "
                     "changed since it was made: tenant=",
                     request.name()),
        {.field = "undo"});
  }
  former->token = known->token;
  Wanted wanted{.declared = *former, .in_force = *former};
  const std::shared_ptr<const Declared> all = store_->Shown();
  KeepLeftOut(DeclaredPolicy(*all, request.name(), *core_), *known,
              &wanted.in_force);
  (void)UidOwners(*all, UidsInForce(*all, *core_)).TakeOthers(&wanted.in_force);
  return wanted;
}

absl::Status AdminTenants::Set(AuditRecord audit,
                               const v1::SetTenantRequest& request,
                               v1::SetTenantResponse* response) {
  if (absl::Status checked = CheckQuantities(request); !checked.ok())
    return checked;
  GMB_RETURN_IF_ERROR(CheckRevision(*store_->Shown(), request.if_revision()));
  const absl::StatusOr<TenantPolicy> known = core_->GetPolicy(request.name());
  if (request.has_lasts() && !known.ok() && !request.undo()) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        "a tenant that is new is made for good: make it first, and then set it "
        "for a time",
        {.field = "lasts"});
  }
  GMB_ASSIGN_OR_RETURN(const Wanted wanted, request.undo()
                                                ? Former(request, known)
                                                : Merge(request, known));
  GMB_RETURN_IF_ERROR(Check(audit, wanted, request));
  response->set_made(!known.ok());
  if (request.dry_run()) return ShowPreview(wanted.in_force, response);
  audit.action = "set_tenant";
  audit.subject = request.name();
  GMB_RETURN_IF_ERROR(Carry(audit, wanted, known.ok(), request, response));
  waiting_->OnSet(request.name());
  return FillTenant(request.name(), response);
}

absl::Status AdminTenants::Check(const AuditRecord& audit, const Wanted& wanted,
                                 const v1::SetTenantRequest& request) const {
  GMB_ASSIGN_OR_RETURN(const std::string device, Resolve(request.device()));
  const std::shared_ptr<const Declared> before = store_->Shown();
  Declared next = *before;
  Write(audit, wanted.declared, request, device, &next);
  const absl::Status now = core_->CheckTenant(wanted.in_force);
  if (!now.ok()) return NamingSources(now, request.name(), next);
  return CheckDeclared(request.name(), *before, next,
                       UidsInForce(*before, *core_));
}

absl::Status AdminTenants::ShowPreview(const TenantPolicy& policy,
                                       v1::SetTenantResponse* response) const {
  for (v1::Change& change : core_->Preview(policy))
    *response->add_changes() = std::move(change);
  return response->made() ? absl::OkStatus()
                          : FillTenant(policy.name, response);
}

absl::Status AdminTenants::FillTenant(const std::string& name,
                                      v1::SetTenantResponse* response) const {
  absl::StatusOr<v1::Tenant> report = core_->TenantReport(name);
  if (!report.ok()) return report.status();
  AddSources(*store_->Shown(), &*report);
  *response->mutable_tenant() = *std::move(report);
  return absl::OkStatus();
}

// A new tenant has its sockets before it is stored.
absl::Status AdminTenants::Carry(const AuditRecord& audit, const Wanted& wanted,
                                 bool is_known,
                                 const v1::SetTenantRequest& request,
                                 v1::SetTenantResponse* response) {
  if (!is_known) {
    if (absl::Status opened = doors_->open(request.name()); !opened.ok())
      return opened;
  }
  if (absl::Status stored = Store(audit, wanted.declared, request);
      !stored.ok()) {
    if (!is_known) (void)doors_->close(request.name());
    return stored;
  }
  absl::StatusOr<std::vector<v1::Change>> changes =
      core_->SetTenant(wanted.in_force);
  if (!changes.ok()) return changes.status();
  for (v1::Change& change : *changes)
    *response->add_changes() = std::move(change);
  return absl::OkStatus();
}

absl::Status AdminTenants::Store(const AuditRecord& audit,
                                 const TenantPolicy& declared,
                                 const v1::SetTenantRequest& request) {
  GMB_ASSIGN_OR_RETURN(const std::string device, Resolve(request.device()));
  if (!request.has_lasts()) {
    return store_->PutTenant(declared, audit,
                             NamedBy(request, device, *store_->Shown()));
  }
  const absl::Status stored = store_->Change(audit, [&](Declared* next) {
    Write(audit, declared, request, device, next);
  });
  overrides_->Await(*store_->Shown());
  return stored;
}

}  // namespace gmb::broker
