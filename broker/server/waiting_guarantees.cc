// Guarantees that did not fit: tried again when there may be room for them.
#include "broker/server/waiting_guarantees.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "broker/log/logging.h"
#include "broker/server/declared_policy.h"

namespace gmb::broker {
namespace {

// After these the guarantees of all may leave room for another one.
constexpr absl::string_view kMakeRoom[] = {"tenant_changed", "tenant_deleted",
                                           "pool_resized", "pool_grown"};

}  // namespace

void WaitingGuarantees::Start() {
  for (const auto& [name, why] : not_in_force_->values()) {
    if (Lacks(name)) tenants_.insert(name);
  }
  any_ = !tenants_.empty();
  subscription_ =
      events_->Subscribe([this](const v1::Event& event) { OnEvent(event); });
}

void WaitingGuarantees::Stop() { events_->Unsubscribe(subscription_); }

void WaitingGuarantees::Add(const std::string& tenant) {
  tenants_.insert(tenant);
  any_ = true;
  // Events that made room since were not listened for.
  QueueRetry();
}

void WaitingGuarantees::OnSet(const std::string& tenant) {
  if (!tenants_.contains(tenant) || !Lacks(tenant)) Settle(tenant);
}

void WaitingGuarantees::OnChanged(const std::string& tenant) {
  if (!IsLeftOut(tenant)) Settle(tenant);
}

void WaitingGuarantees::OnFit(const std::string& tenant) {
  if (tenants_.contains(tenant)) Settle(tenant);
}

void WaitingGuarantees::Settle(const std::string& tenant) {
  not_in_force_->Settle(tenant);
  tenants_.erase(tenant);
  any_ = !tenants_.empty();
}

bool WaitingGuarantees::Lacks(const std::string& tenant) const {
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

bool WaitingGuarantees::IsLeftOut(const std::string& tenant) const {
  const std::shared_ptr<const Declared> all = store_->Shown();
  const auto found = all->tenants.find(tenant);
  if (found == all->tenants.end() || !core_->GetPolicy(tenant).ok())
    return false;
  const TenantPolicy declared = PolicyOf(tenant, InForce(found->second));
  return Lacks(tenant) ||
         std::any_of(declared.device_quotas.begin(),
                     declared.device_quotas.end(), [this](const auto& quota) {
                       return !core_->ResolveDevice(quota.first).ok();
                     });
}

void WaitingGuarantees::OnEvent(const v1::Event& event) {
  const auto is_reason = [&event](absl::string_view kind) {
    return event.kind() == kind;
  };
  if (any_ &&
      std::any_of(std::begin(kMakeRoom), std::end(kMakeRoom), is_reason))
    QueueRetry();
}

void WaitingGuarantees::QueueRetry() {
  if (retry_queued_.exchange(true)) return;
  calls_->Post([this] {
    retry_queued_ = false;
    Retry();
  });
}

void WaitingGuarantees::Retry() {
  if (tenants_.empty()) return;
  const std::shared_ptr<const Declared> declared = store_->Shown();
  const UidOwners owners(*declared, UidsInForce(*declared, *core_));
  for (const std::string& tenant : std::set(tenants_)) {
    const std::optional<TenantPolicy> policy =
        PolicyOfStaying(*declared, owners, tenant, *core_);
    if (!policy.has_value() || !core_->SetTenant(*policy).ok()) continue;
    Settle(tenant);
    LogEvent(LogLevel::kInfo, "stored_guarantee_fits", {{"tenant", tenant}});
  }
}

}  // namespace gmb::broker
