#ifndef GMB_CLIENT_CLI_COMMANDS_USAGE_ERROR_H_
#define GMB_CLIENT_CLI_COMMANDS_USAGE_ERROR_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/cli/context.h"
#include "client/cli/exit_code.h"

namespace gmb::cli {

// --output json is among the arguments. Looked for before they are parsed, as
// what is wrong with them is to be said in that form too.
[[nodiscard]] bool JsonAskedFor(const std::vector<std::string>& arguments);

// Throws CLI::ValidationError for "--name=" without a value, where CLI11 would
// take the next argument.
void RefuseEmptyValues(const std::vector<std::string>& arguments);

// Says what is wrong with the command line, or prints the help that was asked
// for: `app->exit()` in both forms of output.
ExitCode ReportUsage(const CLI::ParseError& error, const CLI::App& app,
                     const Context& context);

// A word of the command line that is wrong, and that no option is to blame for.
ExitCode ReportWrongWord(const std::string& message, const Context& context);

// A command that only has commands below it, alone: its help, and kUsage.
ExitCode ReportNoCommand(const CLI::App& app, const Context& context);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_USAGE_ERROR_H_
