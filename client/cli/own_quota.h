#ifndef GMB_CLIENT_CLI_OWN_QUOTA_H_
#define GMB_CLIENT_CLI_OWN_QUOTA_H_

#include <string>

#include "absl/status/statusor.h"
#include "gmb/options.h"
#include "gmb/v1/session.pb.h"

namespace gmb::cli {

// The quotas and bytes of a tenant, asked as a process of it, with no
// operator's rights. `tenant` as in ConnectAsTenant, whose errors these are.
[[nodiscard]] absl::StatusOr<v1::QuotaReport> AskOwnQuota(
    const std::string& socket_dir, const std::string& tenant,
    ClientOptions options);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_OWN_QUOTA_H_
