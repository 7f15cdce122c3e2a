#ifndef GMB_CLIENT_CLI_COMMANDS_COMPLETION_H_
#define GMB_CLIENT_CLI_COMMANDS_COMPLETION_H_

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace gmb::cli {

// The words that can follow one command: the commands below it and its options.
struct CompletionNode {
  struct Word {
    std::string text;
    std::string description;
  };
  struct Option : Word {
    // The form of its value, as --help shows it: "table|json", "DIR", "SIZE";
    // empty for a flag.
    std::string value;
  };
  std::vector<std::string> path;  // {"tenant", "set"}; empty: gmb itself
  std::vector<Word> commands;
  bool takes_tenant = false;    // a word that is no option is a tenant's name
  std::vector<Option> options;  // long names, those for all commands included
};

// Read off the commands themselves, so that it cannot fall behind them.
[[nodiscard]] std::vector<CompletionNode> CompletionNodes(const CLI::App& app);

// The script that the shell evaluates. Values of options are offered where they
// are words to choose from, directories, files, or tenants, for which the script
// asks the broker (`gmb tenant list --names`).
[[nodiscard]] std::string BashCompletion(
    const std::vector<CompletionNode>& nodes);
[[nodiscard]] std::string ZshCompletion(
    const std::vector<CompletionNode>& nodes);
[[nodiscard]] std::string FishCompletion(
    const std::vector<CompletionNode>& nodes);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_COMPLETION_H_
