#ifndef GMB_CLIENT_CLI_COMMANDS_ORPHAN_FINDINGS_H_
#define GMB_CLIENT_CLI_COMMANDS_ORPHAN_FINDINGS_H_

#include <set>
#include <string>
#include <vector>

#include "client/cli/commands/findings.h"
#include "client/device_probe.h"

namespace gmb::cli {

// Of `gmb doctor`: device memory that no process here uses, on GPUs that no
// broker serves: `served` are the UUIDs of those that one does. `keeper`: the
// path to be named; empty: the usual one.
[[nodiscard]] Findings CheckOrphans(const std::vector<internal::GpuUse>& uses,
                                    const std::set<std::string>& served,
                                    const std::string& keeper);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_ORPHAN_FINDINGS_H_
