// The log: writes the lines, and holds back those of noisy clients.
#include "broker/log/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "base/mutex.h"
#include "broker/log/rate_limit.h"

namespace gmb::broker {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// Lines come ready: spdlog adds its level filter, its lock and its sink.
class Log {
 public:
  Log() : logger_("gmbd", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_pattern("%v");
    logger_.flush_on(spdlog::level::trace);
    // A full disk or a closed terminal is no reason to print about it
    // elsewhere.
    logger_.set_error_handler([](const std::string&) {});
  }

  void Configure(const LogOptions& options) {
    format_ = options.format;
    logger_.set_level(ToSpdlog(options.level));
  }

  bool IsOn(LogLevel level) const {
    return logger_.should_log(ToSpdlog(level));
  }

  void Write(LogLevel level, absl::string_view event,
             absl::Span<const LogField> fields) {
    const std::string line =
        FormatLogLine(format_, absl::Now(), level, event, fields);
    logger_.log(ToSpdlog(level),
                spdlog::string_view_t(line.data(), line.size()));
  }

  std::optional<uint64_t> Admit(absl::string_view event) {
    base::MutexLock lock(&mu_);
    return limit_.Admit(event, absl::Now());
  }

 private:
  spdlog::logger logger_;
  LogFormat format_ = LogFormat::kText;
  base::Mutex mu_;
  RateLimit limit_ ABSL_GUARDED_BY(mu_){/*burst=*/20, /*per_second=*/2};
};

// Never destroyed, so that threads may log until the process is gone.
Log& TheLog() {
  static Log* const kLog = new Log;
  return *kLog;
}

}  // namespace

void ConfigureLog(const LogOptions& options) { TheLog().Configure(options); }

void LogEvent(LogLevel level, absl::string_view event,
              std::initializer_list<LogField> fields) {
  LogEvent(level, event, std::vector<LogField>(fields));
}

void LogEvent(LogLevel level, absl::string_view event,
              const std::vector<LogField>& fields) {
  Log& log = TheLog();
  if (log.IsOn(level)) log.Write(level, event, fields);
}

void LogClientEvent(LogLevel level, absl::string_view event,
                    std::initializer_list<LogField> fields) {
  LogClientEvent(level, event, std::vector<LogField>(fields));
}

void LogClientEvent(LogLevel level, absl::string_view event,
                    const std::vector<LogField>& fields) {
  Log& log = TheLog();
  if (!log.IsOn(level)) return;
  const std::optional<uint64_t> held_back = log.Admit(event);
  if (!held_back.has_value()) return;
  std::vector<LogField> all = fields;
  if (*held_back > 0) all.emplace_back("held_back", *held_back);
  log.Write(level, event, all);
}

}  // namespace gmb::broker
