#ifndef GMB_CLIENT_CLI_VIEWS_LIST_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_LIST_VIEW_H_

#include <ostream>

#include "absl/time/time.h"
#include "client/cli/text/terminal.h"
#include "client/cli/views/table.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// Lists for people, one row an item; a sentence when there is none. `flow`: of
// the pages before this one.
void PrintSessions(const v1::ListSessionsResponse& sessions, absl::Time now,
                   const Terminal& terminal, std::ostream& out,
                   Table::Flow* flow);
void PrintLeases(const v1::ListLeasesResponse& leases, absl::Time now,
                 const Terminal& terminal, std::ostream& out,
                 Table::Flow* flow);
void PrintAudit(const v1::ListAuditResponse& audit, const Terminal& terminal,
                std::ostream& out, Table::Flow* flow);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_LIST_VIEW_H_
