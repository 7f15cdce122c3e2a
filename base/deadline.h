#ifndef GMB_BASE_DEADLINE_H_
#define GMB_BASE_DEADLINE_H_

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"

namespace gmb::base {

// The end of a wait, by the monotonic clock, so that setting the wall clock does
// not move it. Thread-safe.
class Deadline {
 public:
  // `within` may be infinite; one that is negative is over.
  explicit Deadline(absl::Duration within)
      : begun_(std::chrono::steady_clock::now()), within_(within) {}

  // Never negative.
  [[nodiscard]] absl::Duration Left() const {
    const absl::Duration gone =
        absl::FromChrono(std::chrono::steady_clock::now() - begun_);
    return std::max(within_ - gone, absl::ZeroDuration());
  }
  [[nodiscard]] bool IsOver() const { return Left() == absl::ZeroDuration(); }

 private:
  std::chrono::steady_clock::time_point begun_;
  absl::Duration within_;
};

}  // namespace gmb::base

#endif  // GMB_BASE_DEADLINE_H_
