#ifndef GMB_CLIENT_GATE_PARK_TIMER_H_
#define GMB_CLIENT_GATE_PARK_TIMER_H_

#include <chrono>
#include <optional>

#include "ipc/gate_word.h"

namespace gmb::internal {

// When a gate is parked. Pure: the parker's thread tells it what it sees.
class ParkTimer {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;

  // A gate without scopes is parked `park_after` its last one went out.
  explicit ParkTimer(Duration park_after);
  void SetParkAfter(Duration park_after);
  // A gate that is off has a scope that does not go out: nothing is to be looked
  // for. At first it is on.
  void SetOn(bool on) { on_ = on; }

  // Nothing: the gate is to be parked now. Otherwise when to look again, unless
  // woken before; TimePoint::max() where only a wake-up can change anything.
  // `left_at` is when the last scope went out, if the word has none.
  [[nodiscard]] std::optional<TimePoint> NextLook(ipc::GateWord word,
                                                  TimePoint left_at,
                                                  TimePoint now) const;
  // The devices could not be synchronised: the next attempt waits, for longer
  // each time.
  void ParkFailed(TimePoint now);
  void ParkDone() { failures_ = 0; }

 private:
  static constexpr Duration kFirstBackoff = std::chrono::milliseconds(10);
  static constexpr int kMostDoublings = 10;  // to some 10 s

  Duration park_after_{};
  bool on_ = true;
  int failures_ = 0;
  TimePoint not_before_{};
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_GATE_PARK_TIMER_H_
