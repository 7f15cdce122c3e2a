#ifndef GMB_CLIENT_CLI_TEXT_TERMINAL_H_
#define GMB_CLIENT_CLI_TEXT_TERMINAL_H_

#include <string>

#include "absl/strings/string_view.h"

namespace gmb::cli {

// The meaning of a piece of text; a terminal shows it as a colour.
enum class Tone {
  kPlain,
  kStrong,
  kFaint,
  kGood,
  kWarning,
  kBad,
  kAccent,
  kTitle,        // of a column on a whole screen
  kChosenTitle,  // of the column that it is sorted by
};

// How output may look. A value; the default is plain ASCII for a file.
struct Terminal {
  bool is_tty = false;
  bool colour = false;
  bool unicode = false;
  int columns = 80;
  int rows = 24;

  // Of the file descriptor: colours on a terminal unless NO_COLOR is set or
  // TERM is "dumb"; Unicode when the locale's encoding is UTF-8.
  [[nodiscard]] static Terminal Of(int fd);

  // `text` in the colour of `tone`, or as it is.
  [[nodiscard]] std::string Paint(Tone tone, absl::string_view text) const;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_TEXT_TERMINAL_H_
