#ifndef GMB_CLIENT_CLI_DEMO_LOG_TAIL_H_
#define GMB_CLIENT_CLI_DEMO_LOG_TAIL_H_

#include <string>

namespace gmb::cli {

// "its log ends: " and the last lines of a program's log, in one line.
[[nodiscard]] std::string LogTail(const std::string& path);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_LOG_TAIL_H_
