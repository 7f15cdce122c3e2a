#ifndef GMB_CLIENT_CLI_TENANT_IDENTITY_H_
#define GMB_CLIENT_CLI_TENANT_IDENTITY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gmb/client.h"

namespace gmb::cli {

// The directory of the shared sockets, where a token and a uid have a say: DIR,
// also for DIR/tenants/NAME, unless that alone can be reached. The same while the
// broker is stopped, and while it starts.
[[nodiscard]] std::string SharedSocketDir(const std::string& socket_dir);

// The tenant whose own directory it is, where neither has a say; "" if it is none's.
[[nodiscard]] std::string TenantOfDirectory(const std::string& socket_dir);

// The socket directory of a tenant: DIR/tenants/NAME where there is one that
// this user may enter, otherwise the shared one. Where DIR is a tenant's own, the
// NAME beside it counts.
[[nodiscard]] std::string TenantSocketDir(const std::string& socket_dir,
                                          const std::string& tenant);

// A session as the tenant, `options` having all but the socket directory. An
// error says what to do. An empty `tenant`: the one that the socket tells.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Client>> ConnectAsTenant(
    const std::string& socket_dir, const std::string& tenant,
    ClientOptions options);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_TENANT_IDENTITY_H_
