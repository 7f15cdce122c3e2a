#ifndef GMB_BROKER_LOG_LOG_LINE_H_
#define GMB_BROKER_LOG_LOG_LINE_H_

#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace gmb::broker {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

// One key and its value in a line of the log. Keys are literals of [a-z_].
// Never put a token, a nonce or an fd into one.
struct LogField {
  template <typename T,
            std::enable_if_t<std::is_constructible_v<std::string, const T&> &&
                                 !std::is_arithmetic_v<T>,
                             int> = 0>
  LogField(const char* field_key, const T& text)
      : key(field_key), value(std::string(text)), quoted(true) {}
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  LogField(const char* field_key, T number)
      : key(field_key), value(absl::StrCat(number)) {}
  LogField(const char* field_key, bool truth)
      : key(field_key), value(truth ? "true" : "false") {}
  // In seconds.
  LogField(const char* field_key, absl::Duration duration)
      : LogField(field_key, absl::ToDoubleSeconds(duration)) {}

  const char* key;
  std::string value;
  // Text, to be quoted and escaped where the format asks for it.
  bool quoted = false;
};

// One line without its end, whatever the values hold: control characters are
// escaped, values above 1,000 bytes are cut, and JSON is valid UTF-8.
//
//   text  2026-11-20T14:22:26.123456Z info session_opened program="my server"
//   json  {"at":"2026-11-20T14:22:26.123456Z","level":"info",
//          "event":"session_opened","program":"my server"}
//
// (JSON is one line as well.)
[[nodiscard]] std::string FormatLogLine(LogFormat format, absl::Time at,
                                        LogLevel level, absl::string_view event,
                                        absl::Span<const LogField> fields);

[[nodiscard]] absl::string_view LogLevelName(LogLevel level);

}  // namespace gmb::broker

#endif  // GMB_BROKER_LOG_LOG_LINE_H_
