#ifndef GMB_BROKER_CORE_CLOCK_H_
#define GMB_BROKER_CORE_CLOCK_H_

#include "absl/time/time.h"
#include "quota/units.h"

namespace gmb::broker {

// Where the core gets the time from. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual quota::Instant Now() const = 0;  // monotonic
  [[nodiscard]] virtual absl::Time WallTime() const = 0;
};

class SystemClock : public Clock {
 public:
  quota::Instant Now() const override;
  absl::Time WallTime() const override;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_CLOCK_H_
