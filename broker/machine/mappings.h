#ifndef GMB_BROKER_MACHINE_MAPPINGS_H_
#define GMB_BROKER_MACHINE_MAPPINGS_H_

#include <algorithm>
#include <chrono>

#include "quota/units.h"

namespace gmb::broker {

// When clients are likely to map what they were granted: nobody asks them. The
// driver serves one process at a time, so that slabs which nobody waits for are
// not made meanwhile.
class Mappings {
 public:
  // Where one lease after the other is granted, this is not to last.
  static constexpr quota::Nanoseconds kMost = std::chrono::milliseconds(20);

  // Slabs were given to a client, which takes some `time` to map them.
  void Begin(quota::Instant now, quota::Nanoseconds time) {
    if (now >= last_end_) first_begin_ = now;
    last_end_ = now + time;
  }
  [[nodiscard]] quota::Instant end() const {
    return std::min(last_end_, first_begin_ + kMost);
  }

 private:
  quota::Instant first_begin_;
  quota::Instant last_end_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_MAPPINGS_H_
