// Tells the core the time: the steady clock for all that waits, and the wall
// clock for what people read.
#include "broker/core/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace gmb::broker {

quota::Instant SystemClock::Now() const {
  return {std::chrono::duration_cast<quota::Nanoseconds>(
              std::chrono::steady_clock::now().time_since_epoch())
              .count()};
}

absl::Time SystemClock::WallTime() const { return absl::Now(); }

}  // namespace gmb::broker
