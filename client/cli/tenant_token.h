#ifndef GMB_CLIENT_CLI_TENANT_TOKEN_H_
#define GMB_CLIENT_CLI_TENANT_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"

namespace gmb::cli {

// The token in a file (or what a pipe brings), without the newlines at its
// end: as the broker reads the file that its configuration names. Errors name
// the file, never what is in it.
[[nodiscard]] absl::StatusOr<std::string> ReadTenantToken(
    const std::string& path);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_TENANT_TOKEN_H_
