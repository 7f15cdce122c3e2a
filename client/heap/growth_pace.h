#ifndef GMB_CLIENT_HEAP_GROWTH_PACE_H_
#define GMB_CLIENT_HEAP_GROWTH_PACE_H_

#include <chrono>
#include <cstddef>
#include <optional>

namespace gmb::internal {

// How many leases more than it needs a heap asks for when it grows. A program
// that begins grows again and again, and each time is a question to the broker:
// so from the second time in a row on it is for one lease more. That one is
// empty: it goes back when the broker asks, or when it was not needed soon. Not
// thread-safe.
class GrowthPace {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // The heap grows in a row while no pause is as long as `run`; 0: never.
  explicit GrowthPace(std::chrono::nanoseconds run) : run_(run) {}

  // The heap grows now.
  [[nodiscard]] size_t Next(TimePoint now) {
    const bool goes_on = last_.has_value() && now - *last_ < run_;
    last_ = now;
    const bool refused = none_before_.has_value() && now < *none_before_;
    return goes_on && !refused ? 1 : 0;
  }
  // One that was not needed was refused.
  void Refused(TimePoint now) {
    none_before_ = now + kPausesAfterRefusal * run_;
  }

 private:
  // For so many times a run's pause nothing is asked for ahead after a refusal.
  static constexpr int kPausesAfterRefusal = 4;

  const std::chrono::nanoseconds run_;
  std::optional<TimePoint> last_;
  std::optional<TimePoint> none_before_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_GROWTH_PACE_H_
