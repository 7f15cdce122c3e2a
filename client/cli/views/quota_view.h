#ifndef GMB_CLIENT_CLI_VIEWS_QUOTA_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_QUOTA_VIEW_H_

#include <ostream>
#include <string>
#include <vector>

#include "client/cli/text/terminal.h"
#include "gmb/v1/session.pb.h"

namespace gmb::cli {

// A tenant's quota and use on every device, as its own processes see it, and
// what stands in its way.
void PrintQuota(const v1::QuotaReport& report, const Terminal& terminal,
                std::ostream& out);

// The obstacles to more on the device, one sentence each; empty: there are
// none.
[[nodiscard]] std::vector<std::string> Reasons(const v1::QuotaView& view);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_QUOTA_VIEW_H_
