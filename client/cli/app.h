#ifndef GMB_CLIENT_CLI_APP_H_
#define GMB_CLIENT_CLI_APP_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "client/cli/exit_code.h"
#include "client/cli/program.h"
#include "client/cli/text/terminal.h"

namespace gmb::cli {

// gmb, with all of its commands.
[[nodiscard]] Program GmbProgram();

// The whole gmb command but for the process around it: parses `arguments`
// (without the program's name), runs the command, and reports an error.
// Nothing is thrown.
ExitCode Run(const std::vector<std::string>& arguments,
             const Terminal& terminal, std::ostream& out, std::ostream& err);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_APP_H_
