#include <unistd.h>

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/demo/actor.h"
#include "client/cli/demo/demo.h"
#include "client/cli/demo/pool_choice.h"
#include "client/cli/interrupt.h"

namespace gmb::cli {

void AddDemoCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command =
      app->add_subcommand("demo",
                          "Watch four tenants share a pool: a broker and real "
                          "processes, started for it");
  const auto options = std::make_shared<DemoOptions>();
  AddParsedOption(
      command, "--device",
      [options](const std::string& device) {
        options->device = device;
        return CheckPoolName(device);
      },
      "auto, host:SIZE, cuda:N or a GPU's UUID [auto: a GPU, else host memory]")
      ->type_name("DEVICE");
  command->add_flag("--plain", options->plain, "One line an event, no picture");
  command->add_flag("--keep", options->keep,
                    "Keep the directory with configuration and logs");
  command->footer(
      "Needs no set-up, takes under a minute, and may run beside a real "
      "broker. Exit code 1\n"
      "when anything is not as it should be.\n\n"
      "Example: gmb demo --device host:512MiB");
  command->callback([chosen, options] {
    *chosen = [options](Context& context) {
      return RunDemo(context, *options);
    };
  });

  // The processes that the demo starts; an empty group keeps it out of --help.
  CLI::App* const actor =
      app->add_subcommand("demo-actor", "A process of `gmb demo`")->group("");
  actor->callback([chosen] {
    *chosen = [](Context& context) -> absl::StatusOr<ExitCode> {
      return PlayActor(context.socket_dir);
    };
  });
}

}  // namespace gmb::cli
