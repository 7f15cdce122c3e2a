#ifndef GMB_BASE_PATIENCE_H_
#define GMB_BASE_PATIENCE_H_

#include <algorithm>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace gmb::base {

// Tries again what the machine refuses for a moment, as when no file or memory
// is free: after pauses that double from 1 ms on, and for so long in all that it
// is asked to try. Not for threads that others wait for. Not thread-safe.
class Patience {
 public:
  explicit Patience(absl::Duration in_all) : left_(in_all) {}

  // `once` returns a Status or StatusOr. The last one's answer.
  template <typename Try>
  auto Do(const Try& once) -> decltype(once()) {
    absl::Duration pause = absl::Milliseconds(1);
    auto answer = once();
    while (MayPass(StatusOf(answer)) && left_ > absl::ZeroDuration()) {
      pause = std::min(pause, left_);
      absl::SleepFor(pause);
      left_ -= pause;
      pause *= 2;
      answer = once();
    }
    return answer;
  }

  // Of what is asked for wrongly, or is not there, nothing passes.
  [[nodiscard]] static bool MayPass(const absl::Status& status) {
    switch (status.code()) {
      case absl::StatusCode::kResourceExhausted:
      case absl::StatusCode::kUnavailable:
      case absl::StatusCode::kInternal:
      case absl::StatusCode::kUnknown:
        return true;
      default:
        return false;
    }
  }

 private:
  static const absl::Status& StatusOf(const absl::Status& status) {
    return status;
  }
  template <typename StatusOr>
  static const absl::Status& StatusOf(const StatusOr& answer) {
    return answer.status();
  }

  absl::Duration left_;
};

}  // namespace gmb::base

#endif  // GMB_BASE_PATIENCE_H_
