#ifndef GMB_BROKER_MACHINE_TENANT_H_
#define GMB_BROKER_MACHINE_TENANT_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "quota/amount.h"
#include "quota/tenant_quota.h"
#include "quota/units.h"

namespace gmb::broker {

// The steps that may be taken on a tenant's memory when others need it
// (docs/reclaim.md).
struct ReclaimPolicy {
  // Whether a session that was closed and does not unmap may be killed.
  bool may_terminate = false;
  quota::Nanoseconds min_residency{0};
  quota::Nanoseconds pause_grace = std::chrono::seconds(5);
  // Of the host pool, at most.
  quota::Amount host_limit = quota::Amount::Fraction(1);

  friend bool operator==(const ReclaimPolicy&, const ReclaimPolicy&) = default;
};

// All policy of a tenant in one place, as a config file or an operator gives
// it.
struct TenantPolicy {
  std::string name;  // 1 to 63 of [a-z0-9._-], starting with a letter or digit
  quota::TenantQuota quota;                                 // on every device
  std::map<std::string, quota::TenantQuota> device_quotas;  // by UUID, instead
  uint32_t max_handles = 4096;
  uint32_t max_sessions = 64;
  ReclaimPolicy reclaim;
  // How a peer on the shared handle socket is known to be this tenant.
  std::vector<uint32_t> uids;
  std::string token;  // secret: never logged; empty: no token is accepted

  [[nodiscard]] const quota::TenantQuota& QuotaOn(
      const std::string& device) const {
    auto it = device_quotas.find(device);
    return it == device_quotas.end() ? quota : it->second;
  }

  friend bool operator==(const TenantPolicy&, const TenantPolicy&) = default;
};

struct Tenant {
  quota::TenantId id;
  TenantPolicy policy;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_TENANT_H_
