// The command line: mistakes in it, as text or JSON.
#include "client/cli/commands/usage_error.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/text/json.h"

namespace gmb::cli {
namespace {

// The command that the words lead to, "gmb tenant" of `gmb tenant`.
const CLI::App& Deepest(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? app : Deepest(*parsed.front());
}

// The option that CLI11's message begins with; empty when it is about none.
std::string FieldOf(const std::string& message, const CLI::App& app) {
  const CLI::App& command = Deepest(app);
  for (const CLI::App* owner : {&command, &app}) {
    for (const CLI::Option* option : owner->get_options()) {
      const std::string name = option->get_name();
      if (absl::StartsWith(message, absl::StrCat(name, ":")) ||
          absl::StartsWith(message, absl::StrCat(name, " ")))
        return name;
    }
  }
  return "";
}

// The first option among the words that nobody expected, without its value;
// empty when there is none.
std::string FirstOption(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.size() > 1 && word[0] == '-')
      return word.substr(0, word.find('='));
  }
  return "";
}

// CLI11 says the words that nobody expected last first.
CLI::ExtrasError InTheOrderGiven(std::vector<std::string> words) {
  std::reverse(words.begin(), words.end());
  return CLI::ExtrasError(std::move(words));
}

ExitCode ReportAsJson(const std::string& message, const std::string& field,
                      const Context& context) {
  Json json = ErrorToJson(absl::InvalidArgumentError(message));
  json["error"]["field"] = field;
  context.err << LineJson(json) << std::endl;
  return ExitCode::kUsage;
}

}  // namespace

bool JsonAskedFor(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i] == "--output=json") return true;
    if (arguments[i] == "--output" && i + 1 < arguments.size() &&
        arguments[i + 1] == "json")
      return true;
  }
  return false;
}

void RefuseEmptyValues(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return;
    if (absl::StartsWith(argument, "--") &&
        argument.find('=') == argument.size() - 1) {
      throw CLI::ValidationError(
          argument.substr(0, argument.size() - 1),
          "the value is empty: write one, or leave the option out");
    }
  }
}

ExitCode ReportUsage(const CLI::ParseError& error, const CLI::App& app,
                     const Context& context) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> words = app.remaining(/*recurse=*/true);
    const CLI::ExtrasError said = InTheOrderGiven(words);
    if (context.json)
      return ReportAsJson(said.what(), FirstOption(words), context);
    app.exit(said, context.out, context.err);
    return ExitCode::kUsage;
  }
  const bool is_help = error.get_exit_code() == 0;
  if (context.json && !is_help)
    return ReportAsJson(error.what(), FieldOf(error.what(), app), context);
  app.exit(error, context.out, context.err);
  return is_help ? ExitCode::kOk : ExitCode::kUsage;
}

ExitCode ReportNoCommand(const CLI::App& app, const Context& context) {
  const CLI::App& command = Deepest(app);
  const std::string prefix = &command == &app ? "" : "gmb";
  if (context.json) {
    return ReportAsJson(
        absl::StrCat("name a command: `",
                     prefix.empty() ? "" : absl::StrCat(prefix, " "),
                     command.get_name(), " --help` lists them"),
        "", context);
  }
  context.err << command.help(prefix);
  return ExitCode::kUsage;
}

}  // namespace gmb::cli
