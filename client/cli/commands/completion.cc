// Completion: the scripts for bash, zsh and fish.
#include "client/cli/commands/completion.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"

namespace gmb::cli {
namespace {

template <typename Word>
std::string Words(const std::vector<Word>& words) {
  return absl::StrJoin(words, " ",
                       [](std::string* out, const CompletionNode::Word& word) {
                         absl::StrAppend(out, word.text);
                       });
}

// "preserve discard resident" of "preserve|discard|resident"; empty when the
// value is not one of a few words, as in "SIZE|PERCENT".
std::string Choices(const std::string& value) {
  const bool words =
      absl::StrContains(value, '|') &&
      std::all_of(value.begin(), value.end(), [](char c) {
        return c == '|' || absl::ascii_islower(static_cast<unsigned char>(c));
      });
  return words ? absl::StrReplaceAll(value, {{"|", " "}}) : "";
}

// How a shell completes the value of an option.
struct ValueActions {
  const char* directories;
  const char* files;
  const char* tenants;
  std::string (*choices)(const std::string& words);
};

// Each option that takes a value, once, with what the shell is to do for it;
// nothing for most of them.
std::map<std::string, std::string> ValueOptions(
    const std::vector<CompletionNode>& nodes, const ValueActions& actions) {
  std::map<std::string, std::string> options;
  for (const CompletionNode& node : nodes) {
    for (const CompletionNode::Option& option : node.options) {
      if (option.value.empty()) continue;
      const std::string choices = Choices(option.value);
      options[option.text] = option.text == "--tenant" ? actions.tenants
                             : option.value == "DIR"   ? actions.directories
                             : option.value == "FILE"  ? actions.files
                             : choices.empty()         ? ""
                                               : actions.choices(choices);
    }
  }
  return options;
}

// "    --output) ACTION return ;;" for each of those options.
std::string ValueArms(const std::map<std::string, std::string>& options) {
  std::string arms;
  for (const auto& [name, action] : options) {
    absl::StrAppend(&arms, "    ", name, ") ",
                    action.empty() ? "" : absl::StrCat(action, "; "),
                    "return ;;\n");
  }
  return arms;
}

std::string JoinNames(const std::map<std::string, std::string>& options,
                      absl::string_view separator) {
  return absl::StrJoin(options, separator,
                       [](std::string* out, const auto& option) {
                         absl::StrAppend(out, option.first);
                       });
}

// Inside single quotes of bash and zsh, where nothing can be escaped.
std::string Quoted(const std::string& text) {
  return absl::StrReplaceAll(text, {{"'", ""}, {"\n", " "}});
}

// Beside the words of a command, where a tenant may be named.
constexpr char kBashAddTenants[] =
    R"sh(; [[ "$current" == -* ]] || words+=" $(_gmb_tenants)")sh";
constexpr char kZshAddTenants[] =
    R"sh(; [[ "${words[CURRENT]}" == -* ]] || )sh"
    R"sh(words_here+=(${(f)"$(_gmb_tenants)"}))sh";

// "tenant set)" arms of a case over the commands typed so far.
std::string BashArms(const std::vector<CompletionNode>& nodes) {
  std::string arms;
  for (const CompletionNode& node : nodes) {
    absl::SubstituteAndAppend(&arms, "    '$0') words='$1 $2'$3 ;;\n",
                              absl::StrJoin(node.path, " "),
                              Words(node.commands), Words(node.options),
                              node.takes_tenant ? kBashAddTenants : "");
  }
  return arms;
}

// Every path to a command, quoted, to tell commands from other words.
std::vector<std::string> QuotedPaths(const std::vector<CompletionNode>& nodes) {
  std::vector<std::string> paths;
  for (const CompletionNode& node : nodes) {
    if (!node.path.empty())
      paths.push_back(absl::StrCat("'", absl::StrJoin(node.path, " "), "'"));
  }
  return paths;
}

// $0: paths joined by |, $1: arms of the case over them, $2: options that take
// a value joined by |, $3: arms of the case over those. bash makes a word of
// the = in --option=value.
constexpr char kBash[] =
    R"(# bash completion of gmb; to use it: source <(gmb completion bash)
_gmb_tenants() {
  timeout 2 gmb tenant list --names 2>/dev/null
}
_gmb() {
  local current="$${COMP_WORDS[COMP_CWORD]}" previous="$${COMP_WORDS[COMP_CWORD-1]}"
  local path='' i words=''
  if [[ "$$current" == '=' ]]; then
    current=''
  elif [[ "$$previous" == '=' && COMP_CWORD -gt 2 ]]; then
    previous="$${COMP_WORDS[COMP_CWORD-2]}"
  fi
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$${COMP_WORDS[i]}" in
      $2) [[ "$${COMP_WORDS[i+1]}" == '=' ]] && ((++i)); ((++i)); continue ;;
    esac
    case "$${path:+$$path }$${COMP_WORDS[i]}" in
      $0) path="$${path:+$$path }$${COMP_WORDS[i]}" ;;
    esac
  done
  case "$$previous" in
$3  esac
  case "$$path" in
$1  esac
  COMPREPLY=($$(compgen -W "$$words" -- "$$current"))
}
complete -F _gmb gmb
)";

constexpr ValueActions kBashValues = {
    .directories = R"(COMPREPLY=($(compgen -d -- "$current")))",
    .files = R"(COMPREPLY=($(compgen -f -- "$current")))",
    .tenants =
        R"sh(COMPREPLY=($(compgen -W "$(_gmb_tenants)" -- "$current")))sh",
    .choices = [](const std::string& words) {
      return absl::StrCat("COMPREPLY=($(compgen -W '", words,
                          R"(' -- "$current")))");
    }};

// As kBash. A word --option=value is one word here.
constexpr char kZsh[] = R"(#compdef gmb
# zsh completion of gmb; to use it: source <(gmb completion zsh)
_gmb_tenants() {
  timeout 2 gmb tenant list --names 2>/dev/null
}
_gmb() {
  local joined='' i previous="$${words[CURRENT-1]}"
  local -a words_here
  if [[ "$${words[CURRENT]}" == --*=* ]]; then
    previous="$${words[CURRENT]%%=*}"
    compset -P 1 '*='
  fi
  for ((i = 2; i < CURRENT; ++i)); do
    case "$${words[i]}" in
      $2) ((++i)); continue ;;
    esac
    case "$${joined:+$$joined }$${words[i]}" in
      $0) joined="$${joined:+$$joined }$${words[i]}" ;;
    esac
  done
  case "$$previous" in
$3  esac
  case "$$joined" in
$1  esac
  _describe 'gmb' words_here
}
compdef _gmb gmb
)";

constexpr ValueActions kZshValues = {
    .directories = "_files -/",
    .files = "_files",
    .tenants = R"sh(compadd ${(f)"$(_gmb_tenants)"})sh",
    .choices = [](const std::string& words) {
      return absl::StrCat("compadd ", words);
    }};

std::string ZshWord(const CompletionNode::Word& word) {
  return absl::StrCat("'",
                      absl::StrReplaceAll(Quoted(word.text), {{":", "\\:"}}),
                      ":", Quoted(word.description), "'");
}

std::string FishQuoted(const std::string& text) {
  return absl::StrCat(
      "'",
      absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}, {"\n", " "}}),
      "'");
}

// $0: options that take a value, $1: quoted paths. `__gmb_at tenant set` is
// true where exactly those commands were typed.
constexpr char kFish[] =
    R"(# fish completion of gmb; to use it: gmb completion fish | source
function __gmb_at
  set -l typed
  set -l is_value 0
  for word in (commandline -opc)[2..]
    if test $$is_value = 1
      set is_value 0
    else if contains -- $$word $0
      set is_value 1
    else if contains -- (string join -- ' ' $$typed $$word) $1
      set -a typed $$word
    end
  end
  test "$$typed" = "$$argv"
end
function __gmb_tenants
  timeout 2 gmb tenant list --names 2>/dev/null
end
complete -c gmb -f
)";

// -x: takes a value, which is no file.
constexpr ValueActions kFishValues = {
    .directories = " -x -a '(__fish_complete_directories)'",
    .files = " -r -F",
    .tenants = " -x -a '(__gmb_tenants)'",
    .choices = [](const std::string& words) {
      return absl::StrCat(" -x -a '", words, "'");
    }};

}  // namespace

std::string BashCompletion(const std::vector<CompletionNode>& nodes) {
  const auto values = ValueOptions(nodes, kBashValues);
  return absl::Substitute(kBash, absl::StrJoin(QuotedPaths(nodes), "|"),
                          BashArms(nodes), JoinNames(values, "|"),
                          ValueArms(values));
}

std::string ZshCompletion(const std::vector<CompletionNode>& nodes) {
  std::string arms;
  for (const CompletionNode& node : nodes) {
    std::vector<std::string> words;
    for (const auto& word : node.commands) words.push_back(ZshWord(word));
    for (const auto& word : node.options) words.push_back(ZshWord(word));
    absl::SubstituteAndAppend(&arms, "    '$0') words_here=($1)$2 ;;\n",
                              absl::StrJoin(node.path, " "),
                              absl::StrJoin(words, " "),
                              node.takes_tenant ? kZshAddTenants : "");
  }
  const auto values = ValueOptions(nodes, kZshValues);
  return absl::Substitute(kZsh, absl::StrJoin(QuotedPaths(nodes), "|"), arms,
                          JoinNames(values, "|"), ValueArms(values));
}

std::string FishCompletion(const std::vector<CompletionNode>& nodes) {
  const auto values = ValueOptions(nodes, kFishValues);
  std::string script = absl::Substitute(kFish, JoinNames(values, " "),
                                        absl::StrJoin(QuotedPaths(nodes), " "));
  for (const CompletionNode& node : nodes) {
    const std::string start = absl::StrCat("complete -c gmb -n '__gmb_at ",
                                           absl::StrJoin(node.path, " "), "'");
    for (const auto& word : node.commands) {
      absl::StrAppend(&script, start, " -a ", word.text, " -d ",
                      FishQuoted(word.description), "\n");
    }
    if (node.takes_tenant)
      absl::StrAppend(&script, start, " -a '(__gmb_tenants)' -d tenant\n");
    for (const auto& option : node.options) {
      const auto value = values.find(option.text);
      const std::string takes = value == values.end()   ? ""
                                : value->second.empty() ? " -x"
                                                        : value->second;
      absl::StrAppend(&script, start, " -l ", option.text.substr(2), takes,
                      " -d ", FishQuoted(option.description), "\n");
    }
  }
  return script;
}

}  // namespace gmb::cli
