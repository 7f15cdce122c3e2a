#include "broker/server/timed_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <vector>

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using Clock = std::chrono::steady_clock;

TEST(TimedWorkTest, ItIsDoneInTheOrderOfItsTimesAndNeverEarly) {
  TimedWork timed;
  std::vector<int> done;
  std::promise<Clock::time_point> last;
  const auto now = Clock::now();
  const auto late = now + std::chrono::milliseconds(30);
  timed.At(late, [&] {
    done.push_back(3);
    last.set_value(Clock::now());
  });
  timed.At(now + std::chrono::milliseconds(10), [&] { done.push_back(2); });
  timed.At(now - std::chrono::hours(1), [&] { done.push_back(1); });
  EXPECT_GE(last.get_future().get(), late);
  EXPECT_THAT(done, ElementsAre(1, 2, 3));
}

TEST(TimedWorkTest, WorkThatIsDueSoonerDoesNotWaitForWorkThatIsDueLater) {
  TimedWork timed;
  timed.At(Clock::now() + std::chrono::hours(1), [] {});
  std::promise<void> done;
  timed.At(Clock::now(), [&] { done.set_value(); });
  done.get_future().wait();
}

TEST(TimedWorkTest, OneThatRestsIsWokenByTheFirstWorkThatComes) {
  TimedWork timed;
  for (int i = 0; i < 20; ++i) {
    std::promise<void> done;
    timed.At(Clock::now() + std::chrono::milliseconds(1),
             [&] { done.set_value(); });
    done.get_future().wait();
  }
}

TEST(TimedWorkTest, WorkMayAskForMore) {
  TimedWork timed;
  std::promise<void> done;
  timed.At(Clock::now(),
           [&] { timed.At(Clock::now(), [&] { done.set_value(); }); });
  done.get_future().wait();
}

TEST(TimedWorkTest, WorkThatIsNotDueIsDropped) {
  auto held = std::make_shared<int>(1);
  {
    TimedWork timed;
    timed.At(Clock::now() + std::chrono::hours(1), [held] { *held = 2; });
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 1);
}

}  // namespace
}  // namespace gmb::broker
