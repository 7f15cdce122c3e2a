#ifndef GMB_CLIENT_CLI_CONTEXT_H_
#define GMB_CLIENT_CLI_CONTEXT_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/json.h"
#include "client/cli/text/terminal.h"

namespace gmb::cli {

// The context of a command: the options that all commands share, and where its
// output goes.
struct Context {
  std::string socket_dir;  // as ClientOptions has it: may be empty
  bool json = false;       // --output json
  Terminal terminal;       // of `out`
  std::ostream& out;
  std::ostream& err;
  std::string tenant = {};  // whose process the command is, once it is

  void PrintJson(const Json& document) const {
    out << PrettyJson(document) << '\n';
  }
};

// A command, parsed. An error is reported and becomes an exit code.
using Action = std::function<absl::StatusOr<ExitCode>(Context&)>;

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_CONTEXT_H_
