#include "ipc/gate_watch.h"

#include <gtest/gtest.h>

namespace gmb::ipc {
namespace {

constexpr GateWord kActive(GateState::kOpen, 1, 1);
constexpr GateWord kIdle(GateState::kOpen, 0, 1);

absl::Time At(double seconds) {
  return absl::FromUnixNanos(0) + absl::Seconds(seconds);
}

TEST(GateWatch, IdlenessBeginsWhenTheLastScopeWentOutNotAtTheLook) {
  GateWatch watch(At(0));
  watch.Look(kActive, {At(0)}, At(10));
  EXPECT_FALSE(watch.idle_since().has_value());
  watch.Look(kIdle, {At(10.25)}, At(11));
  EXPECT_EQ(watch.idle_since(), At(10.25));
}

TEST(GateWatch, ParkingAndClosingDoNotEndIdleness) {
  GateWatch watch(At(0));
  watch.Look(kIdle, {At(0.5)}, At(1));
  watch.Look(GateWord(GateState::kSync, 0, 1), {At(0.5)}, At(2));
  watch.Look(GateWord(GateState::kParked, 0, 1, true), {At(0.5)}, At(3));
  watch.Look(GateWord(GateState::kClosed, 0, 1), {At(0.5)}, At(4));
  EXPECT_EQ(watch.idle_since(), At(0.5));
}

TEST(GateWatch, ScopesBetweenTwoLooksAreSeen) {
  GateWatch watch(At(0));
  watch.Look(GateWord(GateState::kParked, 0, 1), {At(0.5)}, At(1));
  watch.Look(GateWord(GateState::kParked, 0, 4), {At(1.75)}, At(2));
  EXPECT_EQ(watch.idle_since(), At(1.75));
}

TEST(GateWatch, AClientThatLiesGainsTheTimeBetweenTwoLooksAtMost) {
  GateWatch watch(At(0));
  watch.Look(kActive, {At(0)}, At(10));
  watch.Look(kIdle, {At(-1e9)}, At(11));
  EXPECT_EQ(watch.idle_since(), At(10));
  watch.Look(GateWord(GateState::kOpen, 0, 2), {At(1e9)}, At(12));
  EXPECT_EQ(watch.idle_since(), At(12));
  // Of the same idleness the stamp is taken once.
  watch.Look(GateWord(GateState::kOpen, 0, 2), {At(11)}, At(13));
  EXPECT_EQ(watch.idle_since(), At(12));
}

TEST(GateWatch, AWordThatMakesNoSenseIsActive) {
  GateWatch watch(At(0));
  watch.Look(kIdle, {At(0)}, At(1));
  watch.Look(GateWord(GateState::kParked, 5, 1), {At(0)}, At(2));
  EXPECT_FALSE(watch.idle_since().has_value());
}

GateWord ParkedIn(uint64_t epoch) {
  return GateWord(GateState::kParked, 0, epoch);
}

TEST(GateWatch, TheUsualGapIsThatOfUsesAlsoOfThoseBetweenTwoLooks) {
  GateWatch watch(At(0));
  watch.Look(ParkedIn(1), {At(0)}, At(0));
  EXPECT_EQ(watch.usual_gap(), std::nullopt) << "used once";
  watch.Look(ParkedIn(2), {At(1)}, At(1));
  EXPECT_EQ(watch.usual_gap(), absl::Seconds(1));
  watch.Look(ParkedIn(2), {At(1)}, At(1.5));
  EXPECT_EQ(watch.usual_gap(), absl::Seconds(1));
  watch.Look(ParkedIn(12), {At(11)}, At(11));
  EXPECT_EQ(watch.usual_gap(), absl::Seconds(1)) << "ten in ten seconds";
  watch.Look(ParkedIn(13), {At(16)}, At(16));
  EXPECT_EQ(watch.usual_gap(), absl::Seconds(2)) << "one of 5 s";
}

TEST(GateWatch, WhoHasRestedForLongerHasALongerGap) {
  GateWatch watch(At(0));
  for (uint64_t i = 1; i <= 5; ++i) {
    const absl::Time now = At(static_cast<double>(i));
    watch.Look(ParkedIn(i), {now}, now);
  }
  EXPECT_EQ(watch.usual_gap(), absl::Seconds(1));
  watch.Look(ParkedIn(5), {At(5)}, At(65));
  EXPECT_EQ(watch.usual_gap(), absl::Seconds(60));
}

TEST(GateWatch, TheUsualUseIsFromTheWakeToTheEndOfTheLastScope) {
  GateWatch watch(At(0));
  watch.Look(ParkedIn(1), {At(0.5)}, At(1));
  EXPECT_EQ(watch.usual_use(), std::nullopt) << "it was not parked before";
  watch.Look(GateWord(GateState::kOpen, 1, 2), {At(0.5), At(2)}, At(2.25));
  EXPECT_EQ(watch.usual_use(), std::nullopt) << "not over";
  watch.Look(ParkedIn(2), {At(2.5), At(2)}, At(3));
  EXPECT_EQ(watch.usual_use(), absl::Milliseconds(500));
  watch.Look(ParkedIn(2), {At(2.5), At(2)}, At(4));
  watch.Look(ParkedIn(3), {At(5.1), At(5)}, At(6));
  EXPECT_EQ(watch.usual_use(), absl::Milliseconds(400)) << "each once";
}

TEST(GateWatch, StampsThatLieAreNoLongerThanTheSession) {
  GateWatch watch(At(10));
  watch.Look(ParkedIn(1), {At(1e9), At(-1e9)}, At(12));
  EXPECT_EQ(watch.usual_use(), absl::Seconds(2));
  GateWatch other(At(10));
  other.Look(ParkedIn(1), {At(-1e9), At(1e9)}, At(12));
  EXPECT_EQ(other.usual_use(), std::nullopt);
}

TEST(GateWatch, AWakeUnderWayIsNoUseThatIsOver) {
  GateWatch watch(At(0));
  watch.Look(ParkedIn(1), {At(1), At(2)}, At(2));
  EXPECT_EQ(watch.usual_use(), std::nullopt);
  watch.Look(ParkedIn(2), {At(2.5), At(2)}, At(3));
  EXPECT_EQ(watch.usual_use(), absl::Milliseconds(500));
  watch.Look(ParkedIn(3), {At(3.996), At(4)}, At(5));
  EXPECT_EQ(watch.usual_use(), absl::Milliseconds(375)) << "less than a tick";
}

TEST(GateWatch, AnEpochThatGoesBackIsManyUsesAndNothingWorse) {
  GateWatch watch(At(0));
  for (const uint64_t epoch : {5, 9, 3, 0}) {
    watch.Look(ParkedIn(epoch), {At(0)}, At(static_cast<double>(10 - epoch)));
  }
  ASSERT_TRUE(watch.usual_gap().has_value());
  EXPECT_GE(*watch.usual_gap(), absl::ZeroDuration());
}

}  // namespace
}  // namespace gmb::ipc
