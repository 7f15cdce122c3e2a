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

// What every command gets: the options that all of them share, and where its
// words go.
struct Context {
  std::string socket_dir;  // as ClientOptions has it: may be empty
  bool json = false;       // --output json
  Terminal terminal;       // of `out`
  std::ostream& out;
  std::ostream& err;

  void PrintJson(const Json& document) const {
    out << PrettyJson(document) << '\n';
  }
};

// A command, parsed. An error is reported and becomes an exit code.
using Action = std::function<absl::StatusOr<ExitCode>(Context&)>;

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_CONTEXT_H_
