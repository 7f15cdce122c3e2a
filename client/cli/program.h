#ifndef GMB_CLIENT_CLI_PROGRAM_H_
#define GMB_CLIENT_CLI_PROGRAM_H_

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "client/cli/context.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace gmb::cli {

// One program's command line: what it says of itself, and what it can do.
struct Program {
  std::string name;
  std::string description;
  std::string footer;
  // Adds commands and options to `app`. Parsing puts what is to be done into
  // `*chosen`; both outlive what is added.
  std::function<void(CLI::App* app, Action* chosen)> add;
};

// The whole program but for the process around it: parses `arguments` (without
// the program's name), with the options that all programs have (--socket-dir,
// --output, --version), does what they ask for, and reports an error. Nothing
// is thrown.
ExitCode RunProgram(const Program& program,
                    const std::vector<std::string>& arguments,
                    const Terminal& terminal, std::ostream& out,
                    std::ostream& err);

// main() of the program, on the process's own streams.
int MainOf(const Program& program, int argc, char** argv);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_PROGRAM_H_
