#ifndef GMB_BASE_UTF8_H_
#define GMB_BASE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace gmb::base {

// Length of the valid UTF-8 character at the front of `text`, which is not
// empty; or 0.
inline size_t Utf8Length(absl::string_view text) {
  const auto byte = [text](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xC2 ? 0
                        : lead < 0xE0 ? 2
                        : lead < 0xF0 ? 3
                        : lead < 0xF5 ? 4
                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;  // written longer than needed
  if (lead == 0xED && byte(1) > 0x9F) return 0;  // half of a surrogate pair
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;  // above U+10FFFF
  return length;
}

// The front of `text`, which is UTF-8: at most so many bytes, and no part of a
// character.
inline absl::string_view Utf8Front(absl::string_view text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end);
}

}  // namespace gmb::base

#endif  // GMB_BASE_UTF8_H_
