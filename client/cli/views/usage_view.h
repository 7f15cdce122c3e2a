#ifndef GMB_CLIENT_CLI_VIEWS_USAGE_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_USAGE_VIEW_H_

#include <ostream>

#include "client/cli/text/terminal.h"
#include "client/cli/views/table.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// The use of tenants, a row a day, tenant and device; a sentence when there is
// none. `flow`: of the pages before this one.
void PrintUsage(const v1::ListUsageResponse& usage, const Terminal& terminal,
                std::ostream& out, Table::Flow* flow);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_USAGE_VIEW_H_
