// Sizes, times and names as people read them.
#include "client/cli/text/text.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmb/error.h"

namespace gmb::cli {

std::string SizeText(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  constexpr std::array<absl::string_view, 6> kUnits = {"KiB", "MiB", "GiB",
                                                       "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.995 would be printed as 1024.00: say 1.00 of the next unit.
  while (value >= 1023.995 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.2f %s", value, kUnits[unit]);
}

std::string AmountText(const v1::Amount& amount) {
  switch (amount.kind_case()) {
    case v1::Amount::kBytes:
      return SizeText(amount.bytes());
    case v1::Amount::kFraction:
      return absl::StrFormat("%g%%", amount.fraction() * 100);
    case v1::Amount::KIND_NOT_SET:
      break;
  }
  return "-";
}

std::string PercentText(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return absl::StrFormat(
      "%.1f%%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string DurationText(absl::Duration duration) {
  duration = std::max(duration, absl::ZeroDuration());
  if (duration < absl::Seconds(1)) {
    return absl::StrFormat("%.3g ms", absl::ToDoubleMilliseconds(duration));
  }
  if (duration < absl::Minutes(1)) {
    return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration));
  }
  const int64_t seconds = absl::ToInt64Seconds(duration);
  const int64_t minutes = seconds / 60;
  const int64_t hours = minutes / 60;
  if (hours == 0) return absl::StrFormat("%dm %ds", minutes, seconds % 60);
  if (hours < 24) return absl::StrFormat("%dh %dm", hours, minutes % 60);
  return absl::StrFormat("%dd %dh", hours / 24, hours % 24);
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", ToTime(time),
                          absl::UTCTimeZone());
}

std::string AgeText(const google::protobuf::Timestamp& time, absl::Time now) {
  if (time.seconds() == 0 && time.nanos() == 0) return "-";
  return DurationText(now - ToTime(time));
}

std::string CountText(uint64_t count, absl::string_view thing) {
  return absl::StrCat(count, " ", thing, count == 1 ? "" : "s");
}

std::string KindText(v1::DeviceKind kind) {
  switch (kind) {
    case v1::DEVICE_KIND_VMM:
      return "vmm";
    case v1::DEVICE_KIND_IPC:
      return "ipc";
    case v1::DEVICE_KIND_HOST:
      return "host";
    default:
      return "unknown";
  }
}

std::string ReasonText(v1::ErrorReason reason) {
  return ErrorReasonName(static_cast<ErrorReason>(reason));
}

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return proto;
}

absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) +
         absl::Nanoseconds(time.nanos());
}

std::string Printable(absl::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return printable;
}

std::vector<std::string> Wrap(const std::string& text, size_t columns) {
  std::vector<std::string> lines;
  size_t start = 0;
  while (text.size() - start > columns) {
    size_t end = text.rfind(' ', start + columns);
    if (end == std::string::npos || end <= start)
      end = text.find(' ', start + columns);
    if (end == std::string::npos) break;
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  lines.push_back(text.substr(start));
  return lines;
}

size_t DisplayWidth(absl::string_view text) {
  // Every byte but the continuation bytes 10xxxxxx starts a character.
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace gmb::cli
