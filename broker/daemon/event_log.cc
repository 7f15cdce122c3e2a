// Every event of the broker becomes a line of its log.
#include "broker/daemon/event_log.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

bool IsCausedByClients(absl::string_view kind) {
  return absl::StartsWith(kind, "session_") ||
         absl::StartsWith(kind, "lease_") ||
         absl::StartsWith(kind, "acquire_") || kind == "restore_failed" ||
         kind == "client_overdue" || kind == "unreturned_stuck";
}

// Those that docs/operations.md calls worth an alarm.
constexpr absl::string_view kAlarms[] = {
    "device_lost",      "create_failed",  "missing_changed", "evict_failed",
    "client_overdue",   "restore_failed", "terminated",      "not_terminated",
    "unreturned_stuck", "reload_failed",  "keeper_lost",     "not_kept"};

LogLevel LevelOf(absl::string_view kind) {
  const bool bad = std::find(std::begin(kAlarms), std::end(kAlarms), kind) !=
                   std::end(kAlarms);
  // A refusal leaves somebody unserved, and a wrong token can be an attack.
  return bad || kind == "session_refused" || kind == "session_not_kept" ||
                 kind == "restart_needed" || kind == "reload_pending"
             ? LogLevel::kWarning
             : LogLevel::kInfo;
}

void Write(const v1::Event& event) {
  std::vector<LogField> fields;
  if (!event.tenant().empty()) fields.emplace_back("tenant", event.tenant());
  if (!event.device().empty()) fields.emplace_back("device", event.device());
  if (event.session_id() != 0)
    fields.emplace_back("session", event.session_id());
  if (event.lease_id() != 0) fields.emplace_back("lease", event.lease_id());
  if (event.bytes() != 0) fields.emplace_back("bytes", event.bytes());
  if (event.has_took()) {
    fields.emplace_back("took_seconds",
                        absl::Seconds(event.took().seconds()) +
                            absl::Nanoseconds(event.took().nanos()));
  }
  if (!event.message().empty()) fields.emplace_back("message", event.message());
  if (event.missed() != 0) fields.emplace_back("missed", event.missed());
  if (IsCausedByClients(event.kind())) {
    LogClientEvent(LevelOf(event.kind()), event.kind(), fields);
  } else {
    LogEvent(LevelOf(event.kind()), event.kind(), fields);
  }
}

}  // namespace

EventLog::EventLog(EventBus* bus)
    : bus_(bus), subscription_(bus->Subscribe(Write)) {}

EventLog::~EventLog() { bus_->Unsubscribe(subscription_); }

}  // namespace gmb::broker
