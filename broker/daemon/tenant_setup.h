#ifndef GMB_BROKER_DAEMON_TENANT_SETUP_H_
#define GMB_BROKER_DAEMON_TENANT_SETUP_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "broker/config/broker_config.h"
#include "broker/core/core.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

struct StartingTenant {
  TenantConfig config;
  bool is_stored = false;  // its policy is an operator's, not the file's
};

// The tenants that a broker starts with: those of the configuration file, with
// operators' later changes put over them. Tenants that operators changed come
// first. Tokens and socket access are the file's alone. A tenant that an
// operator deleted stays deleted. Operators' values for a device that is gone
// are left out.
//
// `uuids` maps the devices' configured names to their UUIDs.
[[nodiscard]] std::vector<StartingTenant> MergeTenants(
    const std::vector<TenantConfig>& configured, const StoredState& stored,
    const std::map<std::string, std::string>& uuids);

// A warning about a default tenant that is none of `tenants`; empty: none. It
// is no error, since operators can make the tenant later.
[[nodiscard]] std::string DefaultTenantWarning(
    const std::string& default_tenant, const std::set<std::string>& tenants);

// Gives the tenants to the core. A file's tenant that does not fit is an error.
// An operator's, which did fit once, starts without its guarantee (devices can
// shrink, and without a broker nobody could mend it); its limit holds.
[[nodiscard]] absl::Status AddTenants(
    const std::vector<StartingTenant>& tenants, Core* core);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_TENANT_SETUP_H_
