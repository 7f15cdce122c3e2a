#ifndef GMB_CLIENT_CLI_VIEWS_HOST_POOL_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_HOST_POOL_VIEW_H_

#include <ostream>
#include <string>
#include <vector>

#include "client/cli/text/terminal.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// "host pool  8.00 GiB (...)": its size, how far it is prepared, and who has
// it; then its warnings.
void PrintHostPool(const v1::HostPoolStatus& pool, const Terminal& terminal,
                   std::ostream& out);

// Points of the host pool that need somebody's attention, one sentence each.
[[nodiscard]] std::vector<std::string> Warnings(const v1::HostPoolStatus& pool);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_HOST_POOL_VIEW_H_
