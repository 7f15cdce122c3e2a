#ifndef GMB_BROKER_DAEMON_TENANT_SETUP_H_
#define GMB_BROKER_DAEMON_TENANT_SETUP_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "broker/config/broker_config.h"
#include "broker/core/core.h"
#include "broker/declared/declared.h"
#include "broker/declared/uids.h"

namespace gmb::broker {

struct StartingTenant {
  TenantConfig config;
  // A guarantee of it, on some device at least, is not the file's: it may be
  // dropped.
  bool is_stored = false;
  // A guarantee and the limit beside it are of different sources, and this start
  // has written neither: a value for a time has ended between them.
  bool has_former_pair = false;
  bool is_changed = false;  // a value of it is not the file's
  // The writers of its guarantee and limit, where that differs
  // (DifferentSources).
  std::string sources;

  // Whether it starts without a guarantee that does not fit: one that is above
  // its limit, or one for which the pool has no room.
  [[nodiscard]] bool MayGoWithout(bool is_above_limit) const {
    return is_stored || (has_former_pair && is_above_limit);
  }
};

// The tenants that a broker starts with, as `declared`, into which the file is
// merged already; it was `before`, without values whose time is over. Tokens and
// socket access are the file's alone. Tenants whose guarantees are not the file's
// come last. Values for a device that is gone are left out, and so are uids of
// other tenants: of those that have them now (`held`), else of a later write.
//
// `uuids` maps the devices' configured names to their UUIDs.
[[nodiscard]] std::vector<StartingTenant> MergeTenants(
    const std::vector<TenantConfig>& configured, const Declared& before,
    const Declared& declared, const std::map<std::string, std::string>& uuids,
    const HeldUids& held = {});

// A warning about a default tenant that is none of `tenants`; empty: none. It
// is no error, since operators can make the tenant later.
[[nodiscard]] std::string DefaultTenantWarning(
    const std::string& default_tenant, const std::set<std::string>& tenants);

// Gives the tenants to the core. It is an error if the guarantees of the file
// alone do not fit. A tenant whose guarantee is an operator's, which did fit
// once, starts without it where it does not fit beside them (devices can shrink,
// and without a broker nobody could mend it); its limit holds.
[[nodiscard]] absl::Status AddTenants(
    const std::vector<StartingTenant>& tenants, Core* core);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_TENANT_SETUP_H_
