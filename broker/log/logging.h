#ifndef GMB_BROKER_LOG_LOGGING_H_
#define GMB_BROKER_LOG_LOGGING_H_

#include <initializer_list>
#include <vector>

#include "absl/strings/string_view.h"
#include "broker/log/log_line.h"

namespace gmb::broker {

// The broker's log: one line an event, to standard error. `event` is a stable
// word ("session_opened"), the same as in `gmb watch` where both know it.
//
// Thread-safe. Writes inline, so never log under the core's lock.

struct LogOptions {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;  // what is below it is not written

  friend bool operator==(const LogOptions&, const LogOptions&) = default;
};

// Before the first thread is started. Without it, text at level info.
void ConfigureLog(const LogOptions& options);

void LogEvent(LogLevel level, absl::string_view event,
              std::initializer_list<LogField> fields = {});
void LogEvent(LogLevel level, absl::string_view event,
              const std::vector<LogField>& fields);

// For what a client can cause as often as it likes: at most 20 lines at once
// and 2 a second of each event; the next line says how many were left out.
void LogClientEvent(LogLevel level, absl::string_view event,
                    std::initializer_list<LogField> fields = {});
void LogClientEvent(LogLevel level, absl::string_view event,
                    const std::vector<LogField>& fields);

}  // namespace gmb::broker

#endif  // GMB_BROKER_LOG_LOGGING_H_
