// Colours and widths, where there is a terminal.
#include "client/cli/text/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gmb::cli {
namespace {

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool EncodingIsUtf8() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = absl::AsciiStrToLower(Environment(name));
    if (!value.empty())
      return absl::StrContains(value, "utf-8") ||
             absl::StrContains(value, "utf8");
  }
  return false;
}

const char* CodeOf(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "";
    case Tone::kStrong:
      return "1";
    case Tone::kFaint:
      return "2";
    case Tone::kGood:
      return "32";
    case Tone::kWarning:
      return "33";
    case Tone::kBad:
      return "1;31";
    case Tone::kAccent:
      return "36";
    case Tone::kTitle:
      return "7";
    case Tone::kChosenTitle:
      return "1;7;36";
  }
  return "";
}

}  // namespace

Terminal Terminal::Of(int fd) {
  Terminal terminal;
  terminal.is_tty = isatty(fd) == 1;
  terminal.unicode = EncodingIsUtf8();
  terminal.colour = terminal.is_tty && Environment("NO_COLOR").empty() &&
                    Environment("TERM") != "dumb";
  winsize size{};
  if (terminal.is_tty && ioctl(fd, TIOCGWINSZ, &size) == 0) {
    if (size.ws_col > 0) terminal.columns = size.ws_col;
    if (size.ws_row > 0) terminal.rows = size.ws_row;
  }
  return terminal;
}

std::string Terminal::Paint(Tone tone, absl::string_view text) const {
  if (!colour || tone == Tone::kPlain || text.empty()) return std::string(text);
  return absl::StrCat("\x1b[", CodeOf(tone), "m", text, "\x1b[0m");
}

}  // namespace gmb::cli
