#ifndef GMB_CLIENT_PRELOAD_WAIT_LEFT_H_
#define GMB_CLIENT_PRELOAD_WAIT_LEFT_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace gmb::preload {

// How long a call may still wait for the broker: all its requests together no
// longer than one alone.
class WaitLeft {
 public:
  using Clock = std::chrono::steady_clock;

  // As gmb_acquire_options has it: below 0 there is no end.
  WaitLeft(int64_t wait_ms, Clock::time_point now)
      : wait_ms_(wait_ms), since_(now) {}

  [[nodiscard]] int64_t MillisecondsAt(Clock::time_point now) const {
    if (wait_ms_ < 0) return wait_ms_;
    const auto gone =
        std::chrono::duration_cast<std::chrono::milliseconds>(now - since_);
    return std::max<int64_t>(wait_ms_ - gone.count(), 0);
  }

 private:
  const int64_t wait_ms_;
  const Clock::time_point since_;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_WAIT_LEFT_H_
