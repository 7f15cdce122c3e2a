#include "broker/core/wall_timer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "base/mutex.h"

namespace gmb::broker {
namespace {

class SetClock : public Clock {
 public:
  [[nodiscard]] quota::Instant Now() const override { return {}; }
  [[nodiscard]] absl::Time WallTime() const override {
    const base::MutexLock lock(&mu_);
    looked_at_ = true;
    looked_.NotifyAll();
    return now_;
  }
  void Set(absl::Time now) {
    const base::MutexLock lock(&mu_);
    now_ = now;
  }
  void AwaitLook() const {
    base::MutexLock lock(&mu_);
    while (!looked_at_) looked_.Wait(&mu_);
  }

 private:
  mutable base::Mutex mu_;
  mutable base::CondVar looked_;
  mutable bool looked_at_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time now_ ABSL_GUARDED_BY(mu_) = absl::UnixEpoch() + absl::Hours(9);
};

// A caller that waits for that time is asked for the next one, and need not
// wait until the clock has come so far once more.
TEST(WallTimerTest, AClockThatIsSetBackIsNoticed) {
  SetClock clock;
  std::promise<void> told;
  WallTimer timer(&clock, [&] { told.set_value(); });
  clock.AwaitLook();
  timer.Set(clock.WallTime() + absl::Milliseconds(20));
  clock.Set(absl::UnixEpoch());
  EXPECT_EQ(told.get_future().wait_for(std::chrono::minutes(1)),
            std::future_status::ready);
  timer.Stop();
}

}  // namespace
}  // namespace gmb::broker
