#ifndef GMB_CLIENT_CLI_VIEWS_RECLAIM_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_RECLAIM_VIEW_H_

#include <ostream>

#include "client/cli/text/terminal.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// How much of `request` came back, and why the rest stayed.
void PrintReclaimed(const v1::ReclaimRequest& request,
                    const v1::ReclaimResponse& answer, const Terminal& terminal,
                    std::ostream& out);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_RECLAIM_VIEW_H_
