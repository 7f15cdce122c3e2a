// The log: one event as a line of text or JSON.
#include "broker/log/log_line.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/utf8.h"

namespace gmb::broker {
namespace {

constexpr size_t kMaxValueBytes = 1000;

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = base::Utf8Length(text);
    const unsigned char c = static_cast<unsigned char>(text.front());
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += {'\\', static_cast<char>(c)};
    } else if (c < 0x20 || c == 0x7F) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      absl::StrAppend(&out, text.substr(0, length));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out + '"';
}

// Bare where that is unambiguous, quoted and escaped otherwise.
std::string TextValue(absl::string_view text) {
  const bool bare =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '"' &&
               c != '=' && c != '\\';
      });
  return bare ? std::string(text)
              : absl::StrCat("\"",
                             absl::StrReplaceAll(absl::Utf8SafeCHexEscape(text),
                                                 {{"\\'", "'"}}),
                             "\"");
}

// JSON has no word for nan and inf.
bool IsJsonNumber(absl::string_view text) {
  return text != "nan" && text != "-nan" && text != "inf" && text != "-inf";
}

std::string Cut(const std::string& value) {
  if (value.size() <= kMaxValueBytes) return value;
  return absl::StrCat(value.substr(0, kMaxValueBytes), "...");
}

}  // namespace

absl::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

std::string FormatLogLine(LogFormat format, absl::Time at, LogLevel level,
                          absl::string_view event,
                          absl::Span<const LogField> fields) {
  const std::string time =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", at, absl::UTCTimeZone());
  if (format == LogFormat::kText) {
    std::string line = absl::StrCat(time, " ", LogLevelName(level), " ", event);
    for (const LogField& field : fields) {
      absl::StrAppend(&line, " ", field.key, "=",
                      field.quoted ? TextValue(Cut(field.value)) : field.value);
    }
    return line;
  }
  std::string line =
      absl::StrCat("{\"at\":\"", time, "\",\"level\":\"", LogLevelName(level),
                   "\",\"event\":", JsonString(event));
  for (const LogField& field : fields) {
    const bool as_text = field.quoted || !IsJsonNumber(field.value);
    absl::StrAppend(&line, ",\"", field.key, "\":",
                    as_text ? JsonString(Cut(field.value)) : field.value);
  }
  return line + "}";
}

}  // namespace gmb::broker
