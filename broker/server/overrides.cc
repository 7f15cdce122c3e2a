// Operators' values whose time is over: the former ones are in force again.
#include "broker/server/overrides.h"

#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/declared/changes.h"
#include "broker/declared/merge.h"
#include "broker/log/logging.h"
#include "broker/server/declared_policy.h"

namespace gmb::broker {

Overrides::Overrides(Core* core, QuotaStore* store, const Clock* clock,
                     NotInForce* not_in_force, WaitingGuarantees* waiting,
                     AdminCalls* calls)
    : core_(core),
      store_(store),
      clock_(clock),
      not_in_force_(not_in_force),
      waiting_(waiting),
      timer_(clock, [this, calls] { calls->Post([this] { End(); }); }) {}

void Overrides::Await(const Declared& declared) {
  timer_.Set(NextExpiry(declared));
}

void Overrides::End() {
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
  Await(next);
}

// All at once: one may fall back to what another gives up. A value that holds
// again need not fit any more: then each is as at a start.
void Overrides::FallBack(const std::set<std::string>& tenants,
                         const Declared& declared) {
  FileChange change;
  change.may_reclaim_bytes = std::numeric_limits<uint64_t>::max();
  const UidOwners owners(declared, UidsInForce(declared, *core_, tenants));
  for (const std::string& tenant : tenants) {
    std::optional<TenantPolicy> policy =
        PolicyOfStaying(declared, owners, tenant, *core_);
    if (policy.has_value()) change.tenants.push_back(*std::move(policy));
  }
  const bool fit = core_->ApplyFile(change).ok();
  for (const TenantPolicy& policy : change.tenants) {
    if (fit) {
      waiting_->OnFit(policy.name);
    } else {
      FallBackAlone(policy);
    }
  }
}

void Overrides::FallBackAlone(TenantPolicy policy) {
  const absl::Status set = core_->SetTenant(policy).status();
  if (set.ok()) return;
  not_in_force_->Drop(
      policy.name,
      absl::StrCat("tenant ", policy.name,
                   " is not as declared: what was set for a time is over, and "
                   "its former guarantee does not fit now: it is in force "
                   "again when it fits, and `gmb tenant set ",
                   policy.name, "` with another one settles it at once"));
  LogEvent(LogLevel::kError, "stored_guarantee_does_not_fit",
           {{"tenant", policy.name}, {"reason", set.message()}});
  policy.quota.guarantee = quota::Amount();
  for (auto& [device, quota] : policy.device_quotas)
    quota.guarantee = quota::Amount();
  // Without a guarantee it fits; if not, it stays as it is.
  (void)core_->SetTenant(policy).status();
  waiting_->Add(policy.name);
}

}  // namespace gmb::broker
