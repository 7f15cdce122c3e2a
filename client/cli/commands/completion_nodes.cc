// Completion: the tree of commands and options, from the command line itself.
#include <algorithm>

#include "CLI/CLI.hpp"
#include "client/cli/commands/completion.h"

namespace gmb::cli {
namespace {

void AddOptions(const CLI::App& app,
                std::vector<CompletionNode::Option>* options) {
  for (const CLI::Option* option : app.get_options()) {
    std::string value;
    if (option->get_items_expected_max() > 0) {
      value = option->get_type_name();  // "table|json:{table,json}"
      value.erase(std::min(value.find(':'), value.size()));
    }
    for (const std::string& name : option->get_lnames()) {
      options->push_back({{"--" + name, option->get_description()}, value});
    }
  }
}

// Tenants' commands call it NAME, others TENANT.
bool TakesTenant(const CLI::App& app, const std::vector<std::string>& path) {
  const bool of_tenants = !path.empty() && path.front() == "tenant";
  const std::vector<const CLI::Option*> options = app.get_options();
  return std::any_of(
      options.begin(), options.end(), [&](const CLI::Option* option) {
        const std::string name = option->get_name(true);
        return option->get_lnames().empty() &&
               (name == "TENANT" || (of_tenants && name == "NAME"));
      });
}

void Collect(const CLI::App& root, const CLI::App& app,
             const std::vector<std::string>& path,
             std::vector<CompletionNode>* nodes) {
  CompletionNode node;
  node.path = path;
  node.takes_tenant = TakesTenant(app, path);
  AddOptions(app, &node.options);
  // Options of gmb itself are understood after every command; --help is there
  // already.
  if (!path.empty()) {
    std::vector<CompletionNode::Option> shared;
    AddOptions(root, &shared);
    for (const CompletionNode::Option& word : shared) {
      const bool known =
          std::any_of(node.options.begin(), node.options.end(),
                      [&](const auto& have) { return have.text == word.text; });
      if (!known && word.text != "--version") node.options.push_back(word);
    }
  }
  const std::vector<const CLI::App*> below =
      app.get_subcommands([](const CLI::App* command) {
        return !command->get_name().empty() && !command->get_group().empty();
      });
  for (const CLI::App* command : below) {
    node.commands.push_back({command->get_name(), command->get_description()});
  }
  if (app.get_name() == "completion") {
    for (const char* const shell : {"bash", "zsh", "fish"}) {
      node.commands.push_back({shell, "For this shell"});
    }
  }
  nodes->push_back(std::move(node));
  for (const CLI::App* command : below) {
    std::vector<std::string> deeper = path;
    deeper.push_back(command->get_name());
    Collect(root, *command, deeper, nodes);
  }
}

}  // namespace

std::vector<CompletionNode> CompletionNodes(const CLI::App& app) {
  std::vector<CompletionNode> nodes;
  Collect(app, app, {}, &nodes);
  return nodes;
}

}  // namespace gmb::cli
