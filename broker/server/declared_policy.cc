// What is declared of a tenant, as the policy that it has here.
#include "broker/server/declared_policy.h"

namespace gmb::broker {

TenantPolicy DeclaredPolicy(const Declared& declared, const std::string& name,
                            const Core& core) {
  TenantPolicy policy = PolicyOf(name, InForce(declared.tenants.at(name)));
  std::erase_if(policy.device_quotas, [&](const auto& quota) {
    return !core.ResolveDevice(quota.first).ok();
  });
  return policy;
}

}  // namespace gmb::broker
