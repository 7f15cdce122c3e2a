// `gmb top`: quantities in narrow columns.
#include "client/cli/top/short_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gmb::cli::top {

std::string ShortSize(uint64_t bytes) {
  constexpr char kUnits[] = "BKMGTPE";
  if (bytes == 0) return "0";
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.5 would be printed as 1024: say 1.00 of the next unit.
  while (value >= 1023.5 && unit + 2 < sizeof(kUnits)) {
    value /= 1024;
    ++unit;
  }
  const int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return absl::StrFormat("%.*f%c", digits, value, kUnits[unit]);
}

std::string ShortSizeOrDash(uint64_t bytes) {
  return bytes == 0 ? "-" : ShortSize(bytes);
}

std::string ShortRate(const Rate& rate) {
  if (!rate.has_value()) return "-";
  const double size = std::abs(*rate);
  // Beyond what any machine has: nothing that a double can say is cut wrongly.
  const auto bytes = static_cast<uint64_t>(std::min(size, 0x1p60));
  if (bytes == 0) return "0";
  return absl::StrCat(*rate < 0 ? "-" : "+", ShortSize(bytes));
}

std::string ShortTime(absl::Duration time) {
  // The unit in which it has at most two digits.
  if (time < absl::Seconds(100))
    return absl::StrCat(absl::ToInt64Seconds(time), "s");
  if (time < absl::Minutes(100))
    return absl::StrCat(absl::ToInt64Minutes(time), "m");
  if (time < absl::Hours(100))
    return absl::StrCat(absl::ToInt64Hours(time), "h");
  return absl::StrCat(absl::ToInt64Hours(time) / 24, "d");
}

}  // namespace gmb::cli::top
