// `gmb demo` becomes gmb-demo: its broker, its processes and its screen are no
// part of the operator's command.
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/demo_options.h"
#include "client/cli/installed.h"

namespace gmb::cli {
namespace {

constexpr char kProgram[] = "gmb-demo";

// Returns only when that failed.
absl::Status BecomeDemo(Context& context, const DemoOptions& options) {
  std::string path = FindInstalled(kProgram, {".", LibexecFromBin()});
  if (path.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "the demo is a program of its own, ", kProgram,
        ", and is not there: build or install it with gmb (`make build`, `make "
        "install`), or copy it beside ",
        ThisProgram()));
  }
  std::vector<std::string> words = DemoArguments(options);
  if (context.json) words.insert(words.end(), {"--output", "json"});
  std::vector<char*> arguments = {path.data()};
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  context.out.flush();
  execv(path.c_str(), arguments.data());
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot start ", path));
}

}  // namespace

void AddDemoCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command =
      app->add_subcommand("demo",
                          "Watch four tenants share a pool: a broker and real "
                          "processes, started for it");
  const auto options = std::make_shared<DemoOptions>();
  AddDemoOptions(command, options.get());
  command->callback([chosen, options] {
    *chosen = [options](Context& context) -> absl::StatusOr<ExitCode> {
      return BecomeDemo(context, *options);
    };
  });
}

}  // namespace gmb::cli
