#ifndef GMB_CLIENT_CLI_COMMANDS_ARGUMENTS_H_
#define GMB_CLIENT_CLI_COMMANDS_ARGUMENTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmb/v1/types.pb.h"

namespace gmb::cli {

// Options, and positional arguments, whose values have a form of their own. A
// value that does not have it, an empty one above all, is a usage error that
// names the option. `*value` is left alone when the option is not given.

// Not empty: a script's unset variable must not mean "all" or "the default".
CLI::Option* AddTextOption(CLI::App* app, const std::string& name,
                           std::string* value, const std::string& description);
// A whole number from `least` to `most`, to `take`.
CLI::Option* AddWholeOption(CLI::App* app, const std::string& name,
                            uint64_t least, uint64_t most,
                            std::function<void(uint64_t)> take,
                            const std::string& description);
CLI::Option* AddAmountOption(CLI::App* app, const std::string& name,
                             std::optional<v1::Amount>* value,
                             const std::string& description);
CLI::Option* AddBytesOption(CLI::App* app, const std::string& name,
                            uint64_t* value, const std::string& description);
// "30s", "1h30m", "250ms"; not negative.
CLI::Option* AddDurationOption(CLI::App* app, const std::string& name,
                               absl::Duration* value,
                               const std::string& description);
// From `least` to `most`, to `take`.
CLI::Option* AddBoundedDurationOption(CLI::App* app, const std::string& name,
                                      absl::Duration least, absl::Duration most,
                                      std::function<void(absl::Duration)> take,
                                      const std::string& description);
// A value that only `parse` understands: its error becomes the usage error.
CLI::Option* AddParsedOption(
    CLI::App* app, const std::string& name,
    std::function<absl::Status(const std::string&)> parse,
    const std::string& description);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_ARGUMENTS_H_
