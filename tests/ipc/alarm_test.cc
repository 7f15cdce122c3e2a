#include "ipc/alarm.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>

namespace gmb::ipc {
namespace {

using Clock = std::chrono::steady_clock;

bool Readable(const Alarm& alarm, int wait_ms) {
  pollfd entry{.fd = alarm.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, wait_ms) == 1;
}

TEST(AlarmTest, IsReadableFromItsTimeOnAndNotBefore) {
  absl::StatusOr<Alarm> alarm = Alarm::Create();
  ASSERT_TRUE(alarm.ok());
  EXPECT_FALSE(Readable(*alarm, 0)) << "none is set";
  const Clock::time_point time = Clock::now() + std::chrono::milliseconds(50);
  alarm->Set(time);
  EXPECT_TRUE(Readable(*alarm, 30'000));
  EXPECT_GE(Clock::now(), time);
  alarm->Clear();
  EXPECT_FALSE(Readable(*alarm, 0)) << "it is over";
}

TEST(AlarmTest, ClearLeavesATimeThatIsToCome) {
  absl::StatusOr<Alarm> alarm = Alarm::Create();
  ASSERT_TRUE(alarm.ok());
  alarm->Clear();  // of nothing: does not block
  alarm->Set(Clock::now() + std::chrono::milliseconds(50));
  alarm->Clear();
  EXPECT_TRUE(Readable(*alarm, 30'000));
}

TEST(AlarmTest, ATimeThatHasPassedIsDue) {
  absl::StatusOr<Alarm> alarm = Alarm::Create();
  ASSERT_TRUE(alarm.ok());
  alarm->Set(Clock::time_point());
  EXPECT_TRUE(Readable(*alarm, 30'000));
}

TEST(AlarmTest, TheTimeThatWasSetLastCounts) {
  absl::StatusOr<Alarm> alarm = Alarm::Create();
  ASSERT_TRUE(alarm.ok());
  alarm->Set(Clock::now());
  alarm->Set(Clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(Readable(*alarm, 0));
  alarm->Set(Clock::now());
  alarm->Cancel();
  EXPECT_FALSE(Readable(*alarm, 0));
  alarm->Set(Clock::now());
  EXPECT_TRUE(Readable(*alarm, 30'000));
}

}  // namespace
}  // namespace gmb::ipc
