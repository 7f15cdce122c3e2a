// Numbers of the command line, strictly read.
#include "client/cli/text/number_text.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gmb::cli {
namespace {

absl::Status Refuse(absl::string_view what_to_write, absl::string_view text) {
  constexpr size_t kShown = 40;
  return absl::InvalidArgumentError(absl::StrCat(
      what_to_write, "; got \"", absl::CHexEscape(text.substr(0, kShown)),
      text.size() > kShown ? "...\"" : "\""));
}

bool AllDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

// Digits without a leading zero, unless they are "0".
bool IsWhole(absl::string_view text) {
  return AllDigits(text) && (text.size() == 1 || text.front() != '0');
}

}  // namespace

absl::StatusOr<uint64_t> ParseWhole(absl::string_view text, uint64_t least,
                                    uint64_t most) {
  uint64_t value = 0;
  if (!IsWhole(text) || !absl::SimpleAtoi(text, &value) || value < least ||
      value > most) {
    return Refuse(absl::StrCat("write a whole number from ", least, " to ",
                               most, " in decimal digits"),
                  text);
  }
  return value;
}

absl::StatusOr<double> ParseWeight(absl::string_view text) {
  const size_t point = text.find('.');
  const bool plain =
      IsWhole(text.substr(0, point)) &&
      (point == absl::string_view::npos || AllDigits(text.substr(point + 1)));
  double value = 0;
  if (!plain || !absl::SimpleAtod(text, &value) || !std::isfinite(value) ||
      value <= 0) {
    return Refuse("write a number above 0 in decimal digits, such as 2 or 0.5",
                  text);
  }
  return value;
}

absl::StatusOr<uint8_t> ParseByte(absl::string_view text) {
  if (absl::StartsWithIgnoreCase(text, "0x")) {
    const absl::string_view digits = text.substr(2);
    const bool plain =
        !digits.empty() && digits.size() <= 2 &&
        std::all_of(digits.begin(), digits.end(), [](char c) {
          return absl::ascii_isxdigit(static_cast<unsigned char>(c));
        });
    uint32_t value = 0;
    if (plain && absl::SimpleHexAtoi(digits, &value))
      return static_cast<uint8_t>(value);
  } else if (const absl::StatusOr<uint64_t> value = ParseWhole(text, 0, 0xFF);
             value.ok()) {
    return static_cast<uint8_t>(*value);
  }
  return Refuse("write a byte, such as 0xA5 or 165", text);
}

}  // namespace gmb::cli
