#ifndef GMB_CLIENT_CLI_DEMO_FIND_PROGRAM_H_
#define GMB_CLIENT_CLI_DEMO_FIND_PROGRAM_H_

#include <string>

#include "absl/status/statusor.h"

namespace gmb::cli {

// The path of gmbd or gmb-keeper as it was built or installed with this
// program, else in PATH. NOT_FOUND says what to do.
[[nodiscard]] absl::StatusOr<std::string> FindProgram(const char* name);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_FIND_PROGRAM_H_
