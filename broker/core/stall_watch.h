#ifndef GMB_BROKER_CORE_STALL_WATCH_H_
#define GMB_BROKER_CORE_STALL_WATCH_H_

#include <algorithm>
#include <chrono>
#include <optional>

namespace gmb::broker {

// Says when the process was held up: stopped, frozen with its container, or not
// let run by a busy machine. Messages that clients have sent meanwhile wait in
// sockets, and every deadline seems to be over.
//
// Told of each turn, by the one who has the lock, and of when the ticker is due
// next. A stall is a gap between two turns in which the ticker was to come, and
// did not: where nothing was due, as with all devices lost and one answer owed,
// a gap is none, and the answer has its time once.
class StallWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // A broker that has a pool takes a turn each second (the audit).
  static constexpr std::chrono::seconds kLongestGap{2};
  // More than a busy machine's scheduler takes.
  static constexpr std::chrono::milliseconds kLate{500};

  // Whether this turn is the first one after a stall.
  [[nodiscard]] bool WasHeldUp(Time now) {
    const bool silent = last_.has_value() && now - *last_ > kLongestGap;
    last_ = now;
    return silent && due_.has_value() && now - *due_ > kLate;
  }
  // The ticker comes at `due` next.
  void SetDue(Time due) { due_ = due; }
  // Or at `due` already.
  void SetDueEarlier(Time due) {
    due_ = due_.has_value() ? std::min(*due_, due) : due;
  }

 private:
  std::optional<Time> last_;
  std::optional<Time> due_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_STALL_WATCH_H_
