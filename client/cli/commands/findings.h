#ifndef GMB_CLIENT_CLI_COMMANDS_FINDINGS_H_
#define GMB_CLIENT_CLI_COMMANDS_FINDINGS_H_

#include <ostream>
#include <string>
#include <vector>

#include "client/cli/text/terminal.h"
#include "client/device_probe.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// The findings of `gmb doctor` on this side of the sockets. Every finding
// states a fact and, unless all is well, what to do.
using Findings = std::vector<v1::Finding>;

// The directory and its sockets: their owners, and the users that may use them.
[[nodiscard]] Findings CheckSockets(const std::string& socket_dir);
// Of this process: descriptors, as handles of memory arrive as those.
[[nodiscard]] Findings CheckLimits();
// Driver and support of shareable handles, as this process sees them.
// `gpu_expected`: the broker serves a GPU, or this process has one's node.
[[nodiscard]] Findings CheckDriver(const internal::DeviceProbe& probe,
                                   bool gpu_expected);
// The kernel driver's device node is there, in this container if it is one.
[[nodiscard]] bool HasDriverNode();

[[nodiscard]] v1::Finding MakeFinding(v1::Finding::Severity severity,
                                      std::string subject, std::string message);
[[nodiscard]] bool AnyProblem(const Findings& findings);

void PrintFindings(const Findings& findings, const Terminal& terminal,
                   std::ostream& out);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_FINDINGS_H_
