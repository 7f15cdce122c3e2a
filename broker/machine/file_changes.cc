// The file is edited while the broker runs: what it takes from processes is kept
// within its bound, all of it is checked, and the rest is made at once.
#include <algorithm>
#include <set>

#include "broker/machine/operator_desk.h"
#include "broker/machine/tenant_fit.h"

namespace gmb::broker {
namespace {

// Its guarantee, its uids and its token may be another's now.
TenantPolicy AsLeaving(TenantPolicy policy) {
  policy.uids.clear();
  policy.token.clear();
  policy.quota.guarantee = quota::Amount();
  for (auto& [device, quota] : policy.device_quotas)
    quota.guarantee = quota::Amount();
  return policy;
}

// Nobody else of the file gets its uids and its token before it goes.
void TakeFrom(std::vector<TenantPolicy>* tenants, const TenantPolicy& staying) {
  const std::set<uint32_t> uids(staying.uids.begin(), staying.uids.end());
  for (TenantPolicy& policy : *tenants) {
    std::erase_if(policy.uids,
                  [&](uint32_t uid) { return uids.contains(uid); });
    if (policy.token == staying.token) policy.token.clear();
  }
}

bool Stays(const std::string& name, const std::vector<HeldBack>& held) {
  return std::any_of(held.begin(), held.end(), [&](const HeldBack& one) {
    return one.tenant == name && one.device.empty();
  });
}

}  // namespace

absl::StatusOr<std::vector<HeldBack>> OperatorDesk::ApplyFile(
    const FileChange& change, Turn& turn) {
  std::vector<TenantPolicy> tenants = change.tenants;
  std::vector<HeldBack> held = HoldBack(state_, change, &tenants);
  for (const std::string& name : change.leaving) {
    const Tenant* const tenant = state_.tenants->Find(name);
    if (tenant == nullptr) continue;
    if (Stays(name, held)) {
      TakeFrom(&tenants, tenant->policy);
    } else {
      tenants.push_back(AsLeaving(tenant->policy));
    }
  }
  if (absl::Status fits = CheckAllFit(state_, tenants); !fits.ok()) return fits;
  std::erase_if(tenants, [this](const TenantPolicy& policy) {
    const Tenant* const known = state_.tenants->Find(policy.name);
    return known != nullptr && known->policy == policy;
  });
  Put(tenants, turn);
  return held;
}

absl::Status OperatorDesk::CheckFile(const FileChange& change) const {
  std::vector<TenantPolicy> tenants = change.tenants;
  for (const std::string& name : change.leaving) {
    const Tenant* const tenant = state_.tenants->Find(name);
    if (tenant != nullptr) tenants.push_back(AsLeaving(tenant->policy));
  }
  return CheckAllFit(state_, tenants);
}

}  // namespace gmb::broker
