// Quantities of memory, as people write and read them.
#include "proto/amount_text.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gmb::proto {
namespace {

using Wide = unsigned __int128;

constexpr absl::string_view kAcceptedBytes =
    "write whole bytes or a number with KiB, MiB, GiB, TiB (or KB, MB, GB, "
    "TB), such as 512MiB or "
    "1.5GiB";
constexpr absl::string_view kAcceptedShare =
    "a share of the pool from 0% to 100%, or max";

struct Unit {
  absl::string_view suffix;  // lower case
  uint64_t bytes;
};
constexpr uint64_t kKi = 1024;
constexpr std::array<Unit, 14> kUnits = {{
    {"", 1},
    {"b", 1},
    {"kib", kKi},
    {"mib", kKi* kKi},
    {"gib", kKi* kKi* kKi},
    {"tib", kKi* kKi* kKi* kKi},
    {"ki", kKi},
    {"mi", kKi* kKi},
    {"gi", kKi* kKi* kKi},
    {"ti", kKi* kKi* kKi* kKi},
    {"kb", 1'000},
    {"mb", 1'000'000},
    {"gb", 1'000'000'000},
    {"tb", 1'000'000'000'000},
}};

// A number as written: digits, perhaps a point and more digits.
struct Decimal {
  absl::string_view whole;
  absl::string_view fraction;  // without the point; empty when there is none
  bool has_point = false;
};

// Takes a decimal number from the front of `text`. No zero before it, no sign,
// no exponent, no "nan", no "0x": what strtod would also take.
std::optional<Decimal> TakeDecimal(absl::string_view& text) {
  const auto take_digits = [&text] {
    const auto end =
        std::find_if_not(text.begin(), text.end(), absl::ascii_isdigit);
    const absl::string_view digits =
        text.substr(0, static_cast<size_t>(end - text.begin()));
    text.remove_prefix(digits.size());
    return digits;
  };
  Decimal number;
  number.whole = take_digits();
  if (number.whole.empty()) return std::nullopt;
  // Which some read as octal.
  if (number.whole.size() > 1 && number.whole.front() == '0')
    return std::nullopt;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    number.has_point = true;
    number.fraction = take_digits();
    if (number.fraction.empty()) return std::nullopt;
  }
  return number;
}

absl::Status Refuse(absl::string_view why, absl::string_view accepted,
                    absl::string_view text) {
  constexpr size_t kShown = 40;
  std::string shown = absl::CHexEscape(text.substr(0, kShown));
  if (text.size() > kShown) shown += "...";
  return absl::InvalidArgumentError(
      absl::StrCat(why, ": ", accepted, "; got \"", shown, "\""));
}

// whole * unit + fraction * unit, or nothing when that is above 2^64 - 1.
std::optional<uint64_t> Scale(const Decimal& number, uint64_t unit) {
  uint64_t whole = 0;
  if (!absl::SimpleAtoi(number.whole, &whole)) return std::nullopt;
  // 18 digits are below a byte for every unit; more cannot change the result.
  Wide fraction = 0;
  Wide denominator = 1;
  for (const char digit : number.fraction.substr(0, 18)) {
    fraction = fraction * 10 + static_cast<Wide>(digit - '0');
    denominator *= 10;
  }
  const Wide total = Wide{whole} * unit + fraction * unit / denominator;
  if (total > std::numeric_limits<uint64_t>::max()) return std::nullopt;
  return static_cast<uint64_t>(total);
}

absl::StatusOr<uint64_t> ParseBytesOr(absl::string_view text,
                                      absl::string_view accepted) {
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  if (!rest.empty() && rest.front() == '-')
    return Refuse("a size cannot be negative", accepted, text);
  const std::optional<Decimal> number = TakeDecimal(rest);
  if (!number) return Refuse("not a size", accepted, text);
  rest = absl::StripLeadingAsciiWhitespace(rest);
  const auto unit = std::find_if(
      kUnits.begin(), kUnits.end(),
      [rest](const Unit& u) { return absl::EqualsIgnoreCase(u.suffix, rest); });
  if (unit == kUnits.end()) return Refuse("unknown unit", accepted, text);
  if (number->has_point && unit->bytes == 1) {
    return Refuse("a number without a unit is whole bytes", accepted, text);
  }
  const std::optional<uint64_t> bytes = Scale(*number, unit->bytes);
  if (!bytes)
    return Refuse("the size does not fit into 64 bits", accepted, text);
  return *bytes;
}

absl::StatusOr<v1::Amount> ParseShare(absl::string_view text,
                                      absl::string_view accepted) {
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  if (rest.front() == '-')
    return Refuse("a share cannot be negative", accepted, text);
  const absl::string_view digits =
      absl::StripTrailingAsciiWhitespace(rest.substr(0, rest.size() - 1));
  absl::string_view check = digits;
  double percent = 0;
  if (!TakeDecimal(check) || !check.empty() ||
      !absl::SimpleAtod(digits, &percent)) {
    return Refuse("not a share", accepted, text);
  }
  if (!(percent <= 100))
    return Refuse("a share cannot be above 100%", accepted, text);
  v1::Amount amount;
  amount.set_fraction(percent / 100);
  return amount;
}

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  return ParseBytesOr(text, kAcceptedBytes);
}

absl::StatusOr<v1::Amount> ParseAmount(absl::string_view text) {
  const std::string accepted =
      absl::StrCat(kAcceptedBytes, ", or ", kAcceptedShare);
  const absl::string_view word = absl::StripAsciiWhitespace(text);
  if (absl::EndsWith(word, "%")) return ParseShare(text, accepted);
  v1::Amount amount;
  if (absl::EqualsIgnoreCase(word, "max")) {
    amount.set_fraction(1);
    return amount;
  }
  const absl::StatusOr<uint64_t> bytes = ParseBytesOr(text, accepted);
  if (!bytes.ok()) return bytes.status();
  amount.set_bytes(*bytes);
  return amount;
}

std::string LikelyMeant(uint64_t bytes) {
  if (bytes <= 100) return absl::StrCat(bytes, "% or ", bytes, "GiB");
  return absl::StrCat(bytes, "MiB or ", bytes, "GiB");
}

std::string FormatBytes(uint64_t bytes) {
  if (bytes < kKi) return absl::StrCat(bytes, " B");
  constexpr std::array<absl::string_view, 6> kNames = {"KiB", "MiB", "GiB",
                                                       "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / kKi;
  size_t name = 0;
  // 1023.95 would be printed as 1024.0: say 1.0 of the next unit.
  while (value >= 1023.95 && name + 1 < kNames.size()) {
    value /= kKi;
    ++name;
  }
  return absl::StrFormat("%.1f %s", value, kNames[name]);
}

}  // namespace gmb::proto
