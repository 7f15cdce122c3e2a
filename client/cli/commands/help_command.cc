// `gmb help`: what `--help` says, asked for in the other order.
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/did_you_mean.h"
#include "client/cli/commands/usage_error.h"

namespace gmb::cli {
namespace {

std::vector<std::string> NamesBelow(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands(nullptr))
    names.push_back(command->get_name());
  return names;
}

ExitCode Explain(const CLI::App& root, const std::vector<std::string>& path,
                 const Context& context) {
  const CLI::App* at = &root;
  std::string name = root.get_name();
  for (const std::string& word : path) {
    const std::vector<const CLI::App*> named = at->get_subcommands(
        [&word](const CLI::App* command) { return command->check_name(word); });
    const CLI::App* const next = named.empty() ? nullptr : named.front();
    if (next == nullptr) {
      const std::string meant = DidYouMean(word, NamesBelow(*at));
      return ReportWrongWord(
          absl::StrCat("there is no command ", word,
                       meant.empty()
                           ? ": `gmb help` lists them"
                           : absl::StrCat(": did you mean ", meant, "?")),
          context);
    }
    at = next;
    absl::StrAppend(&name, " ", at->get_name());
  }
  // Not App::help, which explains the command that was parsed: this one.
  context.out << at->get_formatter()->make_help(at, name,
                                                CLI::AppFormatMode::Normal);
  return ExitCode::kOk;
}

}  // namespace

void AddHelpCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command =
      app->add_subcommand("help", "Explain a command, as COMMAND --help does");
  const auto path = std::make_shared<std::vector<std::string>>();
  command->add_option("COMMAND", *path, "Such as: tenant set")->type_name("");
  command->footer("Example: gmb help tenant set");
  command->callback([app, chosen, path] {
    *chosen = [app, path](Context& context) -> absl::StatusOr<ExitCode> {
      return Explain(*app, *path, context);
    };
  });
}

}  // namespace gmb::cli
