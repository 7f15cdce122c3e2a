// The command line: mistakes in it, as text or JSON.
#include "client/cli/commands/usage_error.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/did_you_mean.h"
#include "client/cli/error_report.h"
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

// "gmb tenant set".
std::string PathOf(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty()
             ? app.get_name()
             : absl::StrCat(app.get_name(), " ", PathOf(*parsed.front()));
}

std::vector<std::string> LongOptions(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const owner : {&Deepest(app), &app}) {
    for (const CLI::Option* const option : owner->get_options()) {
      if (absl::StartsWith(option->get_name(), "--"))
        names.push_back(option->get_name());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands(nullptr))
    names.push_back(command->get_name());
  return names;
}

// For the first word that nobody expected; empty when there is none.
std::string AdviceFor(const std::string& word, const CLI::App& app) {
  const bool is_option = word.size() > 1 && word[0] == '-';
  const std::string meant =
      DidYouMean(word.substr(0, word.find('=')),
                 is_option ? LongOptions(app) : CommandsOf(Deepest(app)));
  std::vector<std::string> advice;
  if (!meant.empty())
    advice.push_back(absl::StrCat("did you mean ", meant, "?"));
  if (Deepest(app).get_name() == "run") {
    advice.emplace_back(
        "what is for the program comes after --, as in `gmb run --tenant a -- "
        "python server.py --port 80`");
  }
  return absl::StrJoin(advice, " Otherwise: ");
}

std::string Lines(const std::string& message, const std::string& advice,
                  const CLI::App& app) {
  return absl::StrCat(app.get_name(), ": ", message, "\n",
                      advice.empty() ? "" : absl::StrCat("  ", advice, "\n"),
                      "  `", PathOf(app), " --help` says what there is\n");
}

ExitCode ReportAsJson(const std::string& message, const std::string& field,
                      const Context& context) {
  Json json = ErrorToJson(absl::InvalidArgumentError(message));
  json["error"]["field"] = field;
  context.err << LineJson(json) << std::endl;
  return ExitCode::kUsage;
}

ExitCode ReportUnexpected(const CLI::App& app, const Context& context) {
  const std::vector<std::string> words = app.remaining(/*recurse=*/true);
  const std::string message =
      absl::StrCat("not expected: ", absl::StrJoin(words, " "));
  const std::string advice = words.empty() ? "" : AdviceFor(words.front(), app);
  if (!context.json) {
    context.err << Lines(message, advice, app) << std::flush;
    return ExitCode::kUsage;
  }
  return ReportAsJson(
      advice.empty() ? message : absl::StrCat(message, ": ", advice),
      FirstOption(words), context);
}

}  // namespace

bool JsonAskedFor(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& word = arguments[i];
    if (word == "--json" || word == "--output=json" || word == "-ojson")
      return true;
    if ((word == "--output" || word == "-o") && i + 1 < arguments.size() &&
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
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    return ReportUnexpected(app, context);
  if (error.get_exit_code() == 0) {  // help
    app.exit(error, context.out, context.err);
    return ExitCode::kOk;
  }
  if (context.json)
    return ReportAsJson(error.what(), FieldOf(error.what(), app), context);
  context.err << Lines(error.what(), "", app) << std::flush;
  return ExitCode::kUsage;
}

ExitCode ReportWrongWord(const std::string& message, const Context& context) {
  if (context.json) return ReportAsJson(message, "", context);
  (void)ReportError(absl::InvalidArgumentError(message), context);
  return ExitCode::kUsage;
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
