#include "client/gate/park_timer.h"

#include <gtest/gtest.h>

#include "client/gate/enter_step.h"

namespace gmb::internal {
namespace {

using ipc::GateState;
using ipc::GateWord;
using std::chrono::milliseconds;
using TimePoint = ParkTimer::TimePoint;

const TimePoint kNow{std::chrono::hours(5)};
constexpr GateWord kIdle(GateState::kOpen, 0, 1);
constexpr GateWord kActive(GateState::kOpen, 2, 1);

TEST(ParkTimer, ParksOnceTheLastScopeIsOutForLongEnough) {
  const ParkTimer timer(milliseconds(50));
  EXPECT_EQ(timer.NextLook(kIdle, kNow - milliseconds(20), kNow),
            kNow + milliseconds(30));
  EXPECT_EQ(timer.NextLook(kIdle, kNow - milliseconds(50), kNow), std::nullopt);
  EXPECT_EQ(ParkTimer(milliseconds(0)).NextLook(kIdle, kNow, kNow),
            std::nullopt);
}

TEST(ParkTimer, AnActiveGateIsLookedAtNowAndThenUnderAnySetting) {
  const auto next = [](milliseconds park_after) {
    return *ParkTimer(park_after).NextLook(kActive, kNow, kNow) - kNow;
  };
  EXPECT_EQ(next(milliseconds(50)), milliseconds(50));
  EXPECT_EQ(next(milliseconds(0)), milliseconds(1));
  EXPECT_EQ(next(std::chrono::hours(1)), std::chrono::seconds(1));
  EXPECT_EQ(next(milliseconds(-5)), milliseconds(1));
}

TEST(ParkTimer, WhatIsParkedOrClosedIsLeftToWhoWakesTheParker) {
  const ParkTimer timer(milliseconds(50));
  for (const GateState state :
       {GateState::kSync, GateState::kParked, GateState::kClosed}) {
    EXPECT_EQ(timer.NextLook(GateWord(state, 0, 1), kNow, kNow),
              TimePoint::max());
  }
}

TEST(ParkTimer, AGateThatIsOffIsNotLookedAt) {
  ParkTimer timer(milliseconds(50));
  timer.SetOn(false);
  EXPECT_EQ(timer.NextLook(ipc::kGateOff, kNow, kNow), TimePoint::max());
  timer.SetOn(true);
  EXPECT_EQ(timer.NextLook(kActive, kNow, kNow), kNow + milliseconds(50));
}

TEST(ParkTimer, UnderAPauseItDoesNotWait) {
  const ParkTimer timer(std::chrono::hours(1));
  EXPECT_EQ(timer.NextLook(AfterPause(kIdle), kNow, kNow), std::nullopt);
  EXPECT_NE(timer.NextLook(AfterPause(kActive), kNow, kNow), std::nullopt);
}

TEST(ParkTimer, AStampFromTheFutureOrThePastKeepsTheGateOpenForNoLonger) {
  const ParkTimer timer(milliseconds(50));
  EXPECT_EQ(timer.NextLook(kIdle, TimePoint::max(), kNow),
            kNow + milliseconds(50));
  EXPECT_EQ(timer.NextLook(kIdle, TimePoint::min(), kNow), std::nullopt);
}

TEST(ParkTimer, AfterFailuresItWaitsLongerEachTimeUpToSeconds) {
  ParkTimer timer(milliseconds(0));
  TimePoint now = kNow;
  timer.ParkFailed(now);
  EXPECT_NE(timer.NextLook(kIdle, now, now), std::nullopt);
  EXPECT_EQ(timer.NextLook(kIdle, now, now + milliseconds(10)), std::nullopt);
  for (int i = 0; i < 100; ++i) timer.ParkFailed(now);
  EXPECT_NE(
      timer.NextLook(AfterPause(kIdle), now, now + std::chrono::seconds(10)),
      std::nullopt);
  EXPECT_EQ(timer.NextLook(kIdle, now, now + std::chrono::seconds(11)),
            std::nullopt);
  timer.ParkDone();
  now += std::chrono::minutes(1);
  timer.ParkFailed(now);
  EXPECT_EQ(timer.NextLook(kIdle, now, now + milliseconds(10)), std::nullopt);
}

TEST(EnterStep, SaysWhatToDoInEveryState) {
  using Kind = EnterStep::Kind;
  const auto kind = [](GateWord word, bool capture = false, bool over = false) {
    return NextEnterStep(word, capture, over).kind;
  };
  const GateWord sync(GateState::kSync, 0, 1);
  const GateWord parked(GateState::kParked, 0, 1);
  EXPECT_EQ(kind(kIdle), Kind::kMove);
  EXPECT_EQ(kind(kActive, true), Kind::kMove);
  EXPECT_EQ(kind(parked), Kind::kMove);
  EXPECT_EQ(kind(sync), Kind::kWait);
  EXPECT_EQ(kind(sync, false, true), Kind::kMove);
  EXPECT_EQ(kind(sync, true, true), Kind::kWait);
  EXPECT_EQ(kind(GateWord(GateState::kClosed, 0, 1)), Kind::kRestore);
  for (const GateWord word : {kIdle, kActive, sync, parked}) {
    EXPECT_EQ(kind(AfterPause(word), false, true), Kind::kRestore);
  }
  EXPECT_EQ(kind(GateWord(GateState::kOpen, GateWord::kMaxScopes, 1)),
            Kind::kFull);
  EXPECT_EQ(kind(GateWord(GateState::kParked, 3, 1)), Kind::kRestore);
}

}  // namespace
}  // namespace gmb::internal
