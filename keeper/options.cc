// The keeper's command line.
#include "keeper/options.h"

#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status_macros.h"

namespace gmb::keeper {
namespace {

constexpr absl::Duration kLongest = absl::Hours(24 * 365);

constexpr char kHelp[] =
    R"(gmb-keeper: keeps what a broker's leases are made of while the broker is away.

Usage: gmb-keeper --socket PATH [OPTIONS]

A broker puts the file descriptors of slabs, host memory, sessions and of its
journal here. When its process has died, however it died, the next broker
fetches them. The keeper itself uses no GPU and looks into nothing it keeps.

  --socket PATH        Where the broker finds it: a file in a directory of its
                       own, which is made if it is missing. The directory
                       belongs to this user and is closed to others (0700), for
                       whoever reaches the socket gets all that is kept.
  --abandon-after TIME Without a broker for so long, all is given back, whoever
                       still uses it [10m; 0: never]
  --linger TIME        The same where no client lives that has a session: time
                       for a broker that is started again at once [5s]
  --once               For one broker and those that take its place: it ends when
                       the broker has stopped in order, when a command drops all,
                       and where no broker is there for --abandon-after
  --replace            Take the place of the keeper that listens there, with all
                       that it has and its broker, which notices nothing. The
                       other one ends. Where none listens, this starts as usual.
                       Times and --once are this one's own, not the other's
  --background         End, with exit code 0, once the keeper serves, which goes
                       on in a process of its own and writes to the same
                       standard error
  --help               Show this
  --version            Show the version

One broker is served at a time, of the same user as the keeper. Another one is
served when the process of the last one has died: a broker that is stopped or
hangs still has the journal mapped, so end it first (kill -KILL).

Times are as in 500ms, 30s, 10m, 1h30m. It ends on SIGTERM and SIGINT, and what
it keeps ends with it unless a broker lives. Exit codes: 0 told to stop,
1 cannot go on, 2 wrong usage.

Examples, with a broker's user:
  gmb-keeper --socket /run/gmb-keeper/keeper.sock &
  gmb keeper status --socket /run/gmb-keeper/keeper.sock
  gmb-keeper --socket ./keeper/keeper.sock --once --background
  gmbd --keeper ./keeper/keeper.sock --device host:1GiB
)";

absl::StatusOr<std::chrono::milliseconds> ParseTime(absl::string_view name,
                                                    const std::string& text) {
  absl::Duration time;
  if (!absl::ParseDuration(text, &time) || time < absl::ZeroDuration() ||
      time > kLongest) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": a time as in 500ms, 30s or 10m, at most a year: ", text));
  }
  return absl::ToChronoMilliseconds(time);
}

absl::Status TakeOption(const std::string& name, const std::string& value,
                        Options* options) {
  if (name != "--socket" && name != "--abandon-after" && name != "--linger")
    return absl::InvalidArgumentError(absl::StrCat("no such option: ", name));
  if (value.empty())
    return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
  if (name == "--socket") {
    options->socket = value;
  } else if (name == "--abandon-after") {
    GMB_ASSIGN_OR_RETURN(options->life.abandon_after, ParseTime(name, value));
  } else {
    GMB_ASSIGN_OR_RETURN(options->life.linger, ParseTime(name, value));
  }
  return absl::OkStatus();
}

// Null: it is none.
bool* FlagOf(const std::string& word, Options* options) {
  if (word == "--once") return &options->once;
  if (word == "--replace") return &options->replace;
  if (word == "--background") return &options->background;
  return nullptr;
}

}  // namespace

std::string HelpText() { return kHelp; }

absl::StatusOr<Options> ParseOptions(
    const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--help" || word == "-h" || word == "--version") {
      options.what =
          word == "--version" ? Options::Do::kVersion : Options::Do::kHelp;
      return options;
    }
    if (bool* const flag = FlagOf(word, &options); flag != nullptr) {
      *flag = true;
      continue;
    }
    const size_t equals = word.find('=');
    if (!absl::StartsWith(word, "--")) {
      return absl::InvalidArgumentError(
          absl::StrCat("an option was expected, as --socket: ", word));
    }
    if (equals != std::string::npos) {
      GMB_RETURN_IF_ERROR(TakeOption(word.substr(0, equals),
                                     word.substr(equals + 1), &options));
    } else {
      GMB_RETURN_IF_ERROR(TakeOption(
          word, i + 1 < arguments.size() ? arguments[i + 1] : "", &options));
      ++i;
    }
  }
  if (options.socket.empty()) {
    return absl::InvalidArgumentError(
        "--socket is missing: the path that the broker is told, as in --socket "
        "/run/gmb-keeper/keeper.sock");
  }
  return options;
}

}  // namespace gmb::keeper
