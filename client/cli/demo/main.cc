// gmb-demo, which `gmb demo` starts, and which starts itself once for each
// process of a tenant.
#include "client/cli/commands/demo_options.h"
#include "client/cli/demo/actor.h"
#include "client/cli/demo/demo.h"
#include "client/cli/program.h"

namespace gmb::cli {
namespace {

void AddWhatItDoes(CLI::App* app, Action* chosen) {
  AddDemoProgram(app, [chosen](const DemoOptions& options, bool actor) {
    *chosen = [options, actor](Context& context) -> absl::StatusOr<ExitCode> {
      if (actor) return PlayActor(context.socket_dir);
      return RunDemo(context, options);
    };
  });
}

}  // namespace
}  // namespace gmb::cli

int main(int argc, char** argv) {
  return gmb::cli::MainOf(
      {.name = "gmb-demo",
       .description = "The part that `gmb demo` starts: four tenants share a "
                      "pool, with a broker and real processes",
       .footer = "",
       .add = gmb::cli::AddWhatItDoes},
      argc, argv);
}
