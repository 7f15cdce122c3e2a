// Parking: when a gate without scopes is parked.
#include "client/gate/park_timer.h"

#include <algorithm>

namespace gmb::internal {
namespace {

// So often an active gate is looked at, at most and at least.
constexpr std::chrono::milliseconds kShortestLook(1);
constexpr std::chrono::seconds kLongestLook(1);

}  // namespace

ParkTimer::ParkTimer(Duration park_after) { SetParkAfter(park_after); }

void ParkTimer::SetParkAfter(Duration park_after) {
  park_after_ = std::clamp<Duration>(park_after, Duration::zero(),
                                     std::chrono::hours(24));
}

std::optional<ParkTimer::TimePoint> ParkTimer::NextLook(ipc::GateWord word,
                                                        TimePoint left_at,
                                                        TimePoint now) const {
  if (!on_ || word.state() != ipc::GateState::kOpen) return TimePoint::max();
  // Scopes that go out wake the parker only under a pause: that keeps leaving
  // cheap, and is why it looks by itself.
  const TimePoint next_look =
      now + std::clamp<Duration>(park_after_, kShortestLook, kLongestLook);
  if (word.scopes() > 0) return next_look;
  // A stamp from the future is nonsense, and must not keep the gate open.
  TimePoint due = word.paused() ? now : std::min(left_at, now) + park_after_;
  due = std::max(due, not_before_);
  if (due <= now) return std::nullopt;
  return std::min(due, next_look);
}

void ParkTimer::ParkFailed(TimePoint now) {
  not_before_ = now + kFirstBackoff * (1 << failures_);
  failures_ = std::min(failures_ + 1, kMostDoublings);
}

}  // namespace gmb::internal
