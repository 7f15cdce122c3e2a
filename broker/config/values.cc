// The broker's start: single values of the file and of flags.
#include "broker/config/values.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/amount_text.h"
#include "quota/units.h"

namespace gmb::broker {
namespace {

// Of every kind of device, and of the host pool: less comes to nothing.
constexpr uint64_t kLeastGranuleBytes = uint64_t{2} << 20;

template <typename... Parts>
absl::Status Refuse(absl::string_view text, const Parts&... accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat(accepted..., "; got ", Shown(text)));
}

bool IsDecimal(absl::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// Ids are 32 bits; the last one means "no change" to the system.
absl::StatusOr<uint32_t> ParseId(absl::string_view text) {
  uint32_t id = 0;
  if (!absl::SimpleAtoi(text, &id) ||
      id == std::numeric_limits<uint32_t>::max()) {
    return Refuse(text, "an id is 0 to 4294967294");
  }
  return id;
}

}  // namespace

std::string Shown(absl::string_view text) {
  constexpr size_t kMost = 40;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMost)),
                      text.size() > kMost ? "...\"" : "\"");
}

absl::StatusOr<quota::Amount> ParseQuotaAmount(absl::string_view text) {
  GMB_ASSIGN_OR_RETURN(const v1::Amount amount, proto::ParseAmount(text));
  if (amount.kind_case() == v1::Amount::kFraction)
    return quota::Amount::Fraction(amount.fraction());
  if (amount.bytes() > quota::kMaxPoolBytes)
    return Refuse(text, "an amount is at most 64TiB");
  if (amount.bytes() > 0 && amount.bytes() < kLeastGranuleBytes) {
    return Refuse(
        text, "an amount below ", proto::FormatBytes(kLeastGranuleBytes),
        " comes to nothing: write ", proto::LikelyMeant(amount.bytes()),
        ", or 0 if nothing is meant");
  }
  return quota::Amount::Bytes(amount.bytes());
}

absl::StatusOr<uint64_t> ParseSize(absl::string_view text) {
  const absl::StatusOr<uint64_t> bytes = proto::ParseBytes(text);
  if (bytes.ok() && *bytes > quota::kMaxPoolBytes)
    return Refuse(text, "a size is at most 64TiB");
  return bytes;
}

absl::StatusOr<uint32_t> ParseNumber(absl::string_view text, uint32_t least,
                                     uint32_t most) {
  uint32_t number = 0;
  if (!IsDecimal(text) || !absl::SimpleAtoi(text, &number) || number < least ||
      number > most) {
    return Refuse(text, "write a whole number from ", least, " to ", most);
  }
  return number;
}

absl::StatusOr<double> ParseWeight(absl::string_view text) {
  double weight = 0;
  if (!absl::SimpleAtod(text, &weight) || !std::isfinite(weight) ||
      weight <= 0) {
    return Refuse(text, "a weight is a number above 0, such as 1 or 2.5");
  }
  return weight;
}

absl::StatusOr<absl::Duration> ParseTime(absl::string_view text,
                                         absl::Duration most) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) ||
      duration < absl::ZeroDuration() || duration > most) {
    return Refuse(
        text,
        "write a time with its unit, such as 500ms, 30s or 5m, from 0s to ",
        absl::FormatDuration(most));
  }
  return duration;
}

absl::StatusOr<bool> ParseTruth(absl::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return Refuse(text, "write true or false");
}

absl::StatusOr<mode_t> ParseMode(absl::string_view text) {
  const bool octal = !text.empty() && text.size() <= 4 &&
                     std::all_of(text.begin(), text.end(),
                                 [](char c) { return c >= '0' && c <= '7'; });
  mode_t mode = 0;
  if (octal) {
    for (const char c : text) mode = mode * 8 + static_cast<mode_t>(c - '0');
  }
  if (!octal || mode > 0777)
    return Refuse(text, "a mode is octal, such as 0750, and at most 0777");
  return mode;
}

absl::StatusOr<uid_t> ParseUser(absl::string_view text) {
  if (IsDecimal(text)) return ParseId(text);
  std::vector<char> buffer(16'384);
  passwd entry{};
  passwd* found = nullptr;
  ::getpwnam_r(std::string(text).c_str(), &entry, buffer.data(), buffer.size(),
               &found);
  if (found == nullptr)
    return Refuse(text,
                  "write a user id, or the name of a user of this system");
  return found->pw_uid;
}

absl::StatusOr<gid_t> ParseGroup(absl::string_view text) {
  if (IsDecimal(text)) return ParseId(text);
  std::vector<char> buffer(65'536);
  group entry{};
  group* found = nullptr;
  ::getgrnam_r(std::string(text).c_str(), &entry, buffer.data(), buffer.size(),
               &found);
  if (found == nullptr)
    return Refuse(text,
                  "write a group id, or the name of a group of this system");
  return found->gr_gid;
}

}  // namespace gmb::broker
