#ifndef GMB_CLIENT_CLI_TEXT_LINE_H_
#define GMB_CLIENT_CLI_TEXT_LINE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "client/cli/text/terminal.h"

namespace gmb::cli {

// A line that stops one character before the terminal's edge; its colours take
// no room. Text from outside is made printable.
class Line {
 public:
  explicit Line(const Terminal& terminal);

  Line& Add(Tone tone, absl::string_view text);
  // In exactly `columns` characters, as far as the line has them: cut, or
  // filled up with spaces behind (before it: AddRight) the text.
  Line& AddLeft(Tone tone, absl::string_view text, int columns);
  Line& AddRight(Tone tone, absl::string_view text, int columns);
  // Text of `columns` characters with colours of its own; left out if it does
  // not fit.
  Line& AddPainted(const std::string& text, int columns);

  // Characters that still fit.
  [[nodiscard]] int left() const { return left_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const Terminal& terminal_;
  int left_;
  std::string text_;
};

// The first `columns` characters of `text`: whole ones.
[[nodiscard]] std::string CutTo(absl::string_view text, int columns);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_TEXT_LINE_H_
