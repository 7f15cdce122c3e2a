#ifndef GMB_CLIENT_CLI_VIEWS_STATUS_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_STATUS_VIEW_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/text/terminal.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// The broker in one line, the host pool, then every pool: a bar, every part of
// the pool equation, what is outside the pool, and warnings.
void PrintStatus(const v1::GetStatusResponse& status,
                 const std::string& socket_dir, absl::Time now,
                 const Terminal& terminal, std::ostream& out);

// Points of `status` that need somebody's attention, one sentence each.
[[nodiscard]] std::vector<std::string> Warnings(const v1::PoolStatus& pool);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_STATUS_VIEW_H_
