#include "broker/daemon/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "absl/strings/str_cat.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns what is written of such an event when only warnings are.
std::string LoggedAsWarning(const std::string& kind) {
  ConfigureLog({.level = LogLevel::kWarning});
  testing::internal::CaptureStderr();
  {
    EventBus bus;
    const EventLog log(&bus);
    // Called after the log, which came first.
    std::promise<void> delivered;
    const uint64_t last =
        bus.Subscribe([&](const v1::Event&) { delivered.set_value(); });
    v1::Event event;
    event.set_kind(kind);
    event.set_message("why");
    bus.Publish(event);
    bus.Wake();
    delivered.get_future().wait();
    bus.Unsubscribe(last);
  }
  ConfigureLog({});
  return testing::internal::GetCapturedStderr();
}

TEST(EventLog, WhatIsWorthAnAlarmIsAWarning) {
  for (const std::string kind :
       {"device_lost", "create_failed", "missing_changed", "evict_failed",
        "restore_failed", "client_overdue", "terminated", "session_refused"}) {
    EXPECT_THAT(LoggedAsWarning(kind),
                HasSubstr(absl::StrCat(" warning ", kind, " message=why\n")));
  }
}

TEST(EventLog, WhatHappensEveryDayIsNone) {
  for (const std::string kind :
       {"session_closed", "acquire_denied", "evict_started", "evicted",
        "restored", "pause_withdrawn", "trim_asked", "draining"}) {
    EXPECT_THAT(LoggedAsWarning(kind), IsEmpty()) << kind;
  }
}

}  // namespace
}  // namespace gmb::broker
