// How long a use of the memory lasted, between two parkings: for people.
#include <gtest/gtest.h>

#include "tests/client/gate/bias_fixture.h"

namespace gmb::internal {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class BiasUseTest : public BiasTest {
 protected:
  static Clock::time_point TimeOf(const std::atomic<uint64_t>& stamp) {
    return Clock::time_point(
        std::chrono::nanoseconds(static_cast<int64_t>(stamp.load())));
  }
  Clock::time_point woken_at() { return TimeOf(cells().woken_at_ns); }
  Clock::time_point left_at() { return TimeOf(cells().left_at_ns); }
};

TEST_P(BiasUseTest, AUseOfOneCallEndsWithThatCall) {
  Park();
  EXPECT_EQ(cells().woken_at_ns, 0u);
  for (int turn = 0; turn < 2; ++turn) {
    const Clock::time_point before = Clock::now();
    Call();
    const Clock::time_point after = Clock::now();
    now_ = after + milliseconds(700);
    Park();
    EXPECT_GE(woken_at(), before);
    EXPECT_GE(left_at(), woken_at());
    EXPECT_LE(left_at(), after);
  }
}

TEST_P(BiasUseTest, AUseOfMoreCallsEndsWhenTheyWereSeenToBeOver) {
  Park();
  Call();
  Call();  // by the open gate
  now_ = Clock::now() + milliseconds(5);
  idler_->Step(now_);
  const Clock::time_point seen = now_;
  now_ += milliseconds(700);
  Park();
  EXPECT_EQ(left_at(), seen);
}

TEST_P(BiasUseTest, AUseEndsWhenTheGpuIsDone) {
  Park();
  Call();
  now_ = Clock::now();
  devices_.work = IdlerDevices::Work::kBusy;
  ASSERT_TRUE(StepTo(At::kPoll));
  idler_->Step(now_);
  now_ += milliseconds(300);
  devices_.work = IdlerDevices::Work::kDone;
  Park();
  EXPECT_EQ(left_at(), now_);
}

TEST_P(BiasUseTest, AfterAWakeItLooksSoonAndThenLessAndLessOften) {
  Park();
  IdlerOptions idling;
  idling.park_after = milliseconds(1000);
  Idler idler(&cells(), bias_.get(), &devices_, idling);
  Call();
  const Clock::time_point woken = woken_at();
  EXPECT_EQ(idler.Step(woken), woken + milliseconds(1));
  EXPECT_EQ(idler.Step(woken + milliseconds(1)), woken + milliseconds(2));
  EXPECT_EQ(idler.Step(woken + milliseconds(300)), woken + milliseconds(600));
  EXPECT_EQ(idler.Step(woken + milliseconds(600)), woken + milliseconds(1000));
  Call();
  EXPECT_EQ(idler.Step(woken + milliseconds(999)),
            woken + milliseconds(999 + 999));
}

INSTANTIATE_TEST_SUITE_P(Membarrier, BiasUseTest, ::testing::Bool());

}  // namespace
}  // namespace gmb::internal
