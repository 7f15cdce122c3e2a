#ifndef GMB_CLIENT_CLI_VIEWS_EXPORT_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_EXPORT_VIEW_H_

#include <string>

#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// The tenants as they are in force, as YAML that gmbd reads: each with the
// fields that are not as those of a new tenant. Tokens and sockets are the
// file's alone; a comment says where there is a token.
[[nodiscard]] std::string ExportText(const v1::ListTenantsResponse& tenants);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_EXPORT_VIEW_H_
