// Lines of a screen, cut where it ends.
#include "client/cli/text/line.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/cli/text/text.h"

namespace gmb::cli {

std::string CutTo(absl::string_view text, int columns) {
  std::string fitting(text);
  while (columns < static_cast<int>(DisplayWidth(fitting))) {
    // A whole character: its continuation bytes and its first.
    while (!fitting.empty() &&
           (static_cast<unsigned char>(fitting.back()) & 0xC0) == 0x80) {
      fitting.pop_back();
    }
    if (!fitting.empty()) fitting.pop_back();
  }
  return fitting;
}

Line::Line(const Terminal& terminal)
    : terminal_(terminal), left_(std::max(1, terminal.columns - 1)) {}

Line& Line::Add(Tone tone, absl::string_view text) {
  const std::string fitting = CutTo(Printable(text), left_);
  left_ -= static_cast<int>(DisplayWidth(fitting));
  text_ += terminal_.Paint(tone, fitting);
  return *this;
}

Line& Line::AddLeft(Tone tone, absl::string_view text, int columns) {
  const std::string fitting = CutTo(Printable(text), columns);
  const int room = columns - static_cast<int>(DisplayWidth(fitting));
  return Add(
      tone, absl::StrCat(fitting, std::string(static_cast<size_t>(room), ' ')));
}

Line& Line::AddRight(Tone tone, absl::string_view text, int columns) {
  const std::string fitting = CutTo(Printable(text), columns);
  const int room = columns - static_cast<int>(DisplayWidth(fitting));
  return Add(
      tone, absl::StrCat(std::string(static_cast<size_t>(room), ' '), fitting));
}

Line& Line::AddPainted(const std::string& text, int columns) {
  if (columns > left_) return *this;
  left_ -= columns;
  text_ += text;
  return *this;
}

}  // namespace gmb::cli
