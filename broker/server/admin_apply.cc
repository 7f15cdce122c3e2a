// `gmb apply`: tenants as an operator's file declares them, beside the
// configuration file. All of it is checked before any of it is made.
#include "broker/server/admin_apply.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "broker/declared/changes.h"
#include "broker/declared/conflict.h"
#include "broker/declared/merge.h"
#include "broker/declared/uids.h"
#include "broker/server/admin_audit.h"
#include "broker/server/declared_policy.h"
#include "broker/server/seen_revision.h"
#include "broker/tenant_name.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

absl::Status CheckForm(const v1::ApplyRequest& request) {
  if (!IsValidTenantName(request.name())) {
    return proto::MakeError(v1::BAD_REQUEST,
                            "an apply has a name of 1 to 63 of a-z, 0-9, '-', "
                            "'_' and '.', by which "
                            "it is known what it made",
                            {.field = "name"});
  }
  if (request.yaml().size() <= kMostBytes) return absl::OkStatus();
  return proto::MakeError(v1::BAD_REQUEST,
                          "a file to be applied has at most 1 MiB",
                          {.field = "yaml"});
}

// One that was mistyped would be stored, and have no effect: gmbd's file is
// refused for it, too.
absl::Status CheckDevices(const std::vector<TenantPolicy>& tenants,
                          const Core& core) {
  constexpr size_t kMostShown = 63;
  for (const TenantPolicy& tenant : tenants) {
    for (const auto& [device, quota] : tenant.device_quotas) {
      // An empty name stands for the only device elsewhere.
      if (!device.empty() && core.ResolveDevice(device).ok()) continue;
      return proto::MakeError(
          v1::NO_SUCH_DEVICE,
          absl::StrCat("nothing was changed: tenant ", tenant.name,
                       ": devices: the broker has no device \"",
                       absl::CHexEscape(device.substr(0, kMostShown)),
                       "\" (`gmb status` shows them)"),
          {.field = "yaml"});
    }
  }
  return absl::OkStatus();
}

// The others that declare the tenant: "the configuration file", "apply web";
// empty: none whose it is to stay.
std::string OtherOwner(const Subject& subject, const Source& source) {
  if (subject.in_file) return "the configuration file";
  if (subject.maker.writer == Source::Writer::kApply && subject.maker != source)
    return ToText(subject.maker);
  return "";
}

absl::Status CheckOwners(const Declared& declared,
                         const std::vector<TenantPolicy>& tenants,
                         const Source& source) {
  std::vector<std::string> others;
  for (const TenantPolicy& tenant : tenants) {
    const auto found = declared.tenants.find(tenant.name);
    if (found == declared.tenants.end()) continue;
    const std::string owner = OtherOwner(found->second, source);
    if (!owner.empty())
      others.push_back(absl::StrCat(tenant.name, " is declared by ", owner));
  }
  if (others.empty()) return absl::OkStatus();
  return proto::MakeError(
      v1::BAD_STATE,
      absl::StrCat("nothing was changed, since the file names what others "
                   "declare: ",
                   absl::StrJoin(others, ", "),
                   ": take them out, or say --force"),
      {.field = "force"});
}

// A value for a time is for good where the file says the same.
std::set<std::string> WrittenFields(const Declared& declared,
                                    const std::string& name) {
  std::set<std::string> fields;
  const auto found = declared.tenants.find(name);
  if (found == declared.tenants.end()) return fields;
  for (const auto& [field, writes] : found->second.fields) fields.insert(field);
  return fields;
}

// The tenants of which `next` declares something else.
std::set<std::string> Differing(const Declared& before, const Declared& next) {
  std::set<std::string> names;
  for (const auto& [name, subject] : next.tenants) {
    const auto was = before.tenants.find(name);
    if (was == before.tenants.end() || was->second != subject)
      names.insert(name);
  }
  return names;
}

absl::Status CheckTogether(const Declared& before, const Declared& next,
                           const HeldUids& held) {
  GMB_RETURN_IF_ERROR(CheckConflicts(before, next));
  const absl::Status uids = CheckUids(before, next, held);
  if (uids.ok()) return uids;
  return proto::MakeError(v1::BAD_REQUEST,
                          absl::StrCat("nothing was changed: ", uids.message()),
                          {.field = "yaml"});
}

// The difference of one tenant, in words, without its name.
std::string DiffOf(const std::string& name, const Declared& before,
                   const Declared& after) {
  Declared one_before;
  Declared one_after;
  if (const auto found = before.tenants.find(name);
      found != before.tenants.end())
    one_before.tenants[name] = found->second;
  if (const auto found = after.tenants.find(name); found != after.tenants.end())
    one_after.tenants[name] = found->second;
  return ChangesText(one_before, one_after);
}

}  // namespace

struct AdminApply::Plan {
  Declared before;
  Declared next;
  std::vector<TenantPolicy> changed;  // new ones among them
  std::vector<std::string> deleted;
  uint64_t unchanged = 0;
  std::map<std::string, std::vector<v1::Change>> takes;  // as dry runs say it
};

absl::StatusOr<std::vector<TenantPolicy>> AdminApply::TenantsIn(
    const v1::ApplyRequest& request) const {
  absl::StatusOr<std::vector<TenantPolicy>> named =
      read_(request.yaml(), request.name());
  if (!named.ok()) {
    return proto::MakeError(v1::BAD_REQUEST, named.status().message(),
                            {.field = "yaml"});
  }
  GMB_RETURN_IF_ERROR(CheckDevices(*named, *core_));
  return named;
}

absl::StatusOr<AdminApply::Plan> AdminApply::MakePlan(
    const v1::ApplyRequest& request, const Source& source,
    absl::Time at) const {
  GMB_RETURN_IF_ERROR(CheckForm(request));
  GMB_RETURN_IF_ERROR(CheckRevision(*store_->Shown(), request.if_revision()));
  GMB_ASSIGN_OR_RETURN(const std::vector<TenantPolicy> named,
                       TenantsIn(request));
  Plan plan{.before = *store_->Shown(),
            .next = {},
            .changed = {},
            .deleted = {},
            .unchanged = 0,
            .takes = {}};
  plan.next = plan.before;
  if (!request.force())
    GMB_RETURN_IF_ERROR(CheckOwners(plan.before, named, source));
  std::set<std::string> in_file;
  for (const TenantPolicy& tenant : named) {
    in_file.insert(tenant.name);
    WriteFields(tenant.name, FieldsOf(tenant), source, at, &plan.next,
                WrittenFields(plan.before, tenant.name));
  }
  for (const auto& [name, subject] : plan.before.tenants) {
    if (in_file.contains(name) || subject.deleted) continue;
    if (Withdraw(name, source, &plan.next)) plan.deleted.push_back(name);
  }
  for (const std::string& name : plan.deleted) Forget(name, &plan.next);
  const std::set<std::string> differing = Differing(plan.before, plan.next);
  const HeldUids held = UidsInForce(plan.next, *core_, differing);
  GMB_RETURN_IF_ERROR(CheckTogether(plan.before, plan.next, held));
  const UidOwners owners(plan.next, held);
  for (const auto& [name, subject] : plan.next.tenants) {
    if (subject.deleted) continue;
    const absl::StatusOr<TenantPolicy> known = core_->GetPolicy(name);
    TenantPolicy policy = DeclaredPolicy(plan.next, name, *core_);
    (void)owners.TakeOthers(&policy);
    if (known.ok()) {
      policy.token = known->token;
      KeepLeftOut(DeclaredPolicy(plan.before, name, *core_), *known, &policy);
    }
    if (differing.contains(name) && (!known.ok() || *known != policy)) {
      plan.changed.push_back(std::move(policy));
    } else if (in_file.contains(name)) {
      ++plan.unchanged;
    }
  }
  for (const std::string& name : plan.deleted) {
    const absl::StatusOr<v1::Tenant> report = core_->TenantReport(name);
    if (report.ok() && report->sessions() > 0) {
      return proto::MakeError(
          v1::BAD_STATE,
          absl::StrCat("nothing was changed: the file does not name tenant ",
                       name, " any more, and it has ", report->sessions(),
                       " processes: end them, or see them off with `gmb tenant "
                       "delete ",
                       name, " --wait 30s` first"),
          {.field = "yaml"});
    }
  }
  GMB_RETURN_IF_ERROR(
      core_->CheckFile({.tenants = plan.changed, .leaving = plan.deleted}));
  for (const TenantPolicy& policy : plan.changed)
    plan.takes[policy.name] = core_->Preview(policy);
  return plan;
}

// Tenants that go come first: nothing else was changed yet when one of them has
// a process by now. New ones have their sockets before they are stored.
absl::Status AdminApply::Carry(const AuditRecord& audit, const Plan& plan) {
  for (const std::string& name : plan.deleted)
    GMB_RETURN_IF_ERROR(departures_->Delete(audit, name));
  std::vector<std::string> opened;
  absl::Status status;
  for (const TenantPolicy& policy : plan.changed) {
    if (core_->GetPolicy(policy.name).ok()) continue;
    status = doors_->open(policy.name);
    if (!status.ok()) break;
    opened.push_back(policy.name);
  }
  if (status.ok()) status = store_->PutDeclared(plan.next, audit);
  if (!status.ok()) {
    for (const std::string& name : opened) (void)doors_->close(name);
    return status;
  }
  overrides_->Await(plan.next);
  FileChange change{.tenants = plan.changed, .leaving = {}};
  change.may_reclaim_bytes = std::numeric_limits<uint64_t>::max();
  GMB_RETURN_IF_ERROR(core_->ApplyFile(change).status());
  for (const TenantPolicy& policy : plan.changed)
    waiting_->OnChanged(policy.name);
  return absl::OkStatus();
}

void AdminApply::Fill(const Plan& plan, v1::ApplyResponse* response) const {
  for (const TenantPolicy& policy : plan.changed) {
    v1::AppliedTenant* const tenant = response->add_tenants();
    tenant->set_name(policy.name);
    const auto before = plan.before.tenants.find(policy.name);
    const bool is_new =
        before == plan.before.tenants.end() || before->second.deleted;
    tenant->set_how(is_new ? v1::AppliedTenant::MADE
                           : v1::AppliedTenant::CHANGED);
    tenant->set_diff(DiffOf(policy.name, plan.before, plan.next));
    const auto takes = plan.takes.find(policy.name);
    if (takes == plan.takes.end()) continue;
    for (const v1::Change& change : takes->second)
      *tenant->add_changes() = change;
  }
  for (const std::string& name : plan.deleted) {
    v1::AppliedTenant* const tenant = response->add_tenants();
    tenant->set_name(name);
    tenant->set_how(v1::AppliedTenant::DELETED);
    tenant->set_diff(DiffOf(name, plan.before, plan.next));
  }
  std::sort(response->mutable_tenants()->begin(),
            response->mutable_tenants()->end(),
            [](const v1::AppliedTenant& a, const v1::AppliedTenant& b) {
              return a.name() < b.name();
            });
  response->set_unchanged(plan.unchanged);
  response->set_revision(store_->Shown()->next_order);
}

absl::Status AdminApply::Apply(AuditRecord audit,
                               const v1::ApplyRequest& request,
                               v1::ApplyResponse* response) {
  const Source source{Source::Writer::kApply, request.name()};
  absl::StatusOr<Plan> plan = MakePlan(request, source, audit.at);
  if (!plan.ok()) {
    return RecordIfRefused(store_, audit, "apply", request.name(),
                           plan.status());
  }
  audit.action = "apply";
  audit.subject = request.name();
  audit.detail = ChangesText(plan->before, plan->next);
  const bool is_change =
      !plan->deleted.empty() || !(plan->before == plan->next);
  if (is_change && !request.dry_run()) GMB_RETURN_IF_ERROR(Carry(audit, *plan));
  Fill(*plan, response);
  return absl::OkStatus();
}

}  // namespace gmb::broker
