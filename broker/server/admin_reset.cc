// Operators' values end: they are given back to the file, or their time is over.
#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/declared/changes.h"
#include "broker/declared/merge.h"
#include "broker/log/logging.h"
#include "broker/server/admin_service.h"
#include "broker/server/declared_policy.h"
#include "broker/server/field_sources.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// After these the guarantees of all may leave room for another one.
constexpr absl::string_view kMakeRoom[] = {"tenant_changed", "tenant_deleted",
                                           "pool_resized", "pool_grown"};

// The file made it and does not name it any more.
bool IsLeaving(const Subject& subject) {
  return subject.maker.writer == Source::Writer::kFile && !subject.in_file;
}

}  // namespace

absl::Status AdminService::DoResetTenant(AuditRecord audit,
                                         const v1::ResetTenantRequest& request,
                                         v1::SetTenantResponse* response) {
  GMB_RETURN_IF_ERROR(CheckRevision(request.if_revision()));
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
  Reset(request.name(), fields, &next);
  TenantPolicy policy = DeclaredPolicy(next, known.name, *core_);
  policy.token = known.token;
  if (absl::Status checked = core_->CheckTenant(policy); !checked.ok())
    return checked;
  if (request.dry_run()) return ShowPreview(policy, response);
  audit.action = "reset_tenant";
  audit.subject = request.name();
  GMB_RETURN_IF_ERROR(store_->Change(audit, [&](Declared* declared) {
    Reset(request.name(), fields, declared);
  }));
  expiry_.Set(NextExpiry(*store_->Shown()));
  GMB_ASSIGN_OR_RETURN(std::vector<v1::Change> changes,
                       core_->SetTenant(policy));
  for (v1::Change& change : changes)
    *response->add_changes() = std::move(change);
  if (known != policy) OnChanged(request.name(), &known);
  return FillTenant(request.name(), response);
}

void AdminService::EndOverrides() {
  const absl::Time now = clock_->WallTime();
  const Declared before = *store_->Shown();
  Declared next = before;
  const std::set<std::string> tenants = Expire(now, &next);
  if (!tenants.empty()) {
    AuditRecord audit;
    audit.at = now;
    audit.operator_name = "gmbd";
    audit.action = "override_ended";
    if (tenants.size() == 1) audit.subject = *tenants.begin();
    audit.detail = ChangesText(before, next);
    // It is over although the disk does not take it.
    if (!store_->PutDeclared(next, audit).ok()) store_->HoldDeclared(next);
    FallBack(tenants, next);
  }
  expiry_.Set(NextExpiry(next));
}

// All at once: one may fall back to what another gives up. A value that holds
// again need not fit any more: then each is as at a start.
void AdminService::FallBack(const std::set<std::string>& tenants,
                            const Declared& declared) {
  FileChange change;
  change.may_reclaim_bytes = std::numeric_limits<uint64_t>::max();
  for (const std::string& tenant : tenants) {
    const absl::StatusOr<TenantPolicy> known = core_->GetPolicy(tenant);
    // The guarantee of one that is leaving may be another's by now, and it is to
    // go as it is.
    const auto subject = declared.tenants.find(tenant);
    if (!known.ok() || subject == declared.tenants.end() ||
        IsLeaving(subject->second))
      continue;
    change.tenants.push_back(DeclaredPolicy(declared, tenant, *core_));
    change.tenants.back().token = known->token;
  }
  const bool fit = core_->ApplyFile(change).ok();
  for (const TenantPolicy& policy : change.tenants) {
    if (!fit) {
      FallBackAlone(policy);
    } else if (fall_back_later_.contains(policy.name)) {
      Settle(policy.name);
    }
  }
}

void AdminService::FallBackAlone(TenantPolicy policy) {
  const absl::Status set = core_->SetTenant(policy).status();
  if (set.ok()) return;
  Drop(policy.name,
       absl::StrCat("tenant ", policy.name,
                    " is not as declared: what was set for a time is over, and "
                    "its former guarantee does not fit now: it is in force "
                    "again when it fits, and `gmb tenant set ",
                    policy.name, "` settles it at once"));
  LogEvent(LogLevel::kError, "stored_guarantee_does_not_fit",
           {{"tenant", policy.name}, {"reason", set.message()}});
  policy.quota.guarantee = quota::Amount();
  for (auto& [device, quota] : policy.device_quotas)
    quota.guarantee = quota::Amount();
  // Without a guarantee it fits; if not, it stays as it is.
  (void)core_->SetTenant(policy).status();
  fall_back_later_.insert(policy.name);
  falls_back_later_ = true;
  // Events that made room since were not listened for.
  QueueFallBack();
}

bool AdminService::LacksGuarantee(const std::string& tenant) const {
  const std::shared_ptr<const Declared> all = store_->Shown();
  const absl::StatusOr<TenantPolicy> known = core_->GetPolicy(tenant);
  if (!known.ok() || !all->tenants.contains(tenant)) return false;
  const TenantPolicy declared = DeclaredPolicy(*all, tenant, *core_);
  if (known->quota.guarantee != declared.quota.guarantee) return true;
  return std::any_of(
      known->device_quotas.begin(), known->device_quotas.end(),
      [&](const auto& quota) {
        const auto wanted = declared.device_quotas.find(quota.first);
        return wanted != declared.device_quotas.end() &&
               wanted->second.guarantee != quota.second.guarantee;
      });
}

bool AdminService::FallsBackLater(const std::string& tenant) const {
  return fall_back_later_.contains(tenant) && LacksGuarantee(tenant);
}

void AdminService::OnEvent(const v1::Event& event) {
  const auto is_reason = [&event](absl::string_view kind) {
    return event.kind() == kind;
  };
  if (falls_back_later_ &&
      std::any_of(std::begin(kMakeRoom), std::end(kMakeRoom), is_reason))
    QueueFallBack();
}

void AdminService::QueueFallBack() {
  if (retry_queued_.exchange(true)) return;
  operators_.Post([this] {
    retry_queued_ = false;
    FallBackLater();
  });
}

void AdminService::WaitForDropped() {
  for (const auto& [name, why] : dropped_) {
    if (LacksGuarantee(name)) fall_back_later_.insert(name);
  }
  falls_back_later_ = !fall_back_later_.empty();
}

void AdminService::FallBackLater() {
  const std::shared_ptr<const Declared> declared = store_->Shown();
  for (const std::string& tenant : std::set(fall_back_later_)) {
    const absl::StatusOr<TenantPolicy> known = core_->GetPolicy(tenant);
    const auto found = declared->tenants.find(tenant);
    if (!known.ok() || found == declared->tenants.end() ||
        IsLeaving(found->second)) {
      continue;
    }
    TenantPolicy policy = DeclaredPolicy(*declared, tenant, *core_);
    policy.token = known->token;
    if (!core_->SetTenant(policy).ok()) continue;
    Settle(tenant);
    LogEvent(LogLevel::kInfo, "stored_guarantee_fits", {{"tenant", tenant}});
  }
}

}  // namespace gmb::broker
