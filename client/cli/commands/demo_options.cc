// The demo's command line: gmb has it for its help and completion, gmb-demo to
// be told.
#include "client/cli/commands/demo_options.h"

#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/text/number_text.h"
#include "proto/amount_text.h"

namespace gmb::cli {

void AddDemoOptions(CLI::App* app, DemoOptions* options) {
  AddParsedOption(
      app, "--device",
      [options](const std::string& device) {
        options->device = device;
        return CheckPoolName(device);
      },
      "auto, host:SIZE, cuda:N or a GPU's UUID [auto: a GPU, else host memory]")
      ->type_name("DEVICE");
  app->add_flag("--plain", options->plain, "One line an event, no picture");
  app->add_flag("--keep", options->keep,
                "Keep the directory with configuration and logs");
  app->footer(
      "Needs no set-up, takes under a minute, and may run beside a real "
      "broker. Exit code 1\n"
      "when anything is not as it should be.\n\n"
      "Example: gmb demo --device host:512MiB");
}

void AddDemoProgram(
    CLI::App* app,
    std::function<void(const DemoOptions& options, bool actor)> parsed) {
  const auto options = std::make_shared<DemoOptions>();
  AddDemoOptions(app, options.get());
  const auto actor = std::make_shared<bool>(false);
  // An empty group keeps it out of --help.
  app->add_flag("--actor", *actor, "Be a process of the demo")->group("");
  app->callback([parsed = std::move(parsed), options, actor] {
    parsed(*options, *actor);
  });
}

std::vector<std::string> DemoArguments(const DemoOptions& options) {
  std::vector<std::string> arguments = {"--device", options.device};
  if (options.plain) arguments.emplace_back("--plain");
  if (options.keep) arguments.emplace_back("--keep");
  return arguments;
}

absl::Status CheckPoolName(const std::string& device) {
  if (device == "auto" || absl::StartsWith(device, "GPU-") ||
      absl::StartsWith(device, "MIG-"))
    return absl::OkStatus();
  absl::string_view rest = device;
  if (absl::ConsumePrefix(&rest, "cuda:")) {
    constexpr uint64_t kMostDevices = 1024;
    return ParseWhole(rest, 0, kMostDevices).status();
  }
  if (absl::ConsumePrefix(&rest, "host:")) {
    const absl::StatusOr<uint64_t> bytes = proto::ParseBytes(rest);
    if (!bytes.ok() || *bytes >= kDemoStepBytes) return bytes.status();
    return absl::InvalidArgumentError(absl::StrCat(
        "the demo needs a larger pool: write host:", kDemoStepBytes >> 20,
        "MiB or more; got \"", device, "\""));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "write auto, host:SIZE (such as host:512MiB), cuda:N or a GPU's UUID "
      "(`nvidia-smi -L` shows them); got \"",
      device, "\""));
}

}  // namespace gmb::cli
