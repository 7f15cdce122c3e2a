// `gmb completion`: prints a shell's script.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/completion.h"

namespace gmb::cli {
namespace {

std::string ScriptFor(const std::string& shell, const CLI::App& app) {
  const std::vector<CompletionNode> nodes = CompletionNodes(app);
  if (shell == "bash") return BashCompletion(nodes);
  return shell == "zsh" ? ZshCompletion(nodes) : FishCompletion(nodes);
}

}  // namespace

void AddCompletionCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "completion", "Print the completion script of a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->type_name("")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer("Example: source <(gmb completion bash)");
  command->callback([app, chosen, shell] {
    *chosen = [shell = *shell,
               script = ScriptFor(*shell, *app)](Context& context) {
      if (context.json) {
        context.PrintJson(Json{{"shell", shell}, {"script", script}});
      } else {
        context.out << script;
      }
      return ExitCode::kOk;
    };
  });
}

}  // namespace gmb::cli
