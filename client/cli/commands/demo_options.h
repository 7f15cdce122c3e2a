#ifndef GMB_CLIENT_CLI_COMMANDS_DEMO_OPTIONS_H_
#define GMB_CLIENT_CLI_COMMANDS_DEMO_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace gmb::cli {

// The options of `gmb demo`, which it passes on to gmb-demo.
struct DemoOptions {
  std::string device = "auto";
  bool plain = false;
  bool keep = false;
};

// The demo's pool is a multiple of it.
inline constexpr uint64_t kDemoStepBytes = uint64_t{40} << 20;

// Adds them, with their help, to a command or program. `*options` outlives
// `app`.
void AddDemoOptions(CLI::App* app, DemoOptions* options);
// The options of gmb-demo: those, and --actor, with which it starts itself once
// for each process of a tenant. `parsed` is called once they are read.
void AddDemoProgram(
    CLI::App* app,
    std::function<void(const DemoOptions& options, bool actor)> parsed);
// The arguments that AddDemoOptions reads back.
[[nodiscard]] std::vector<std::string> DemoArguments(
    const DemoOptions& options);

// Whether `device` is "auto", "host:SIZE", "cuda:N", "GPU-<uuid>" or
// "MIG-<uuid>", of a size that the demo fits into. INVALID_ARGUMENT says what
// to write.
[[nodiscard]] absl::Status CheckPoolName(const std::string& device);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_DEMO_OPTIONS_H_
