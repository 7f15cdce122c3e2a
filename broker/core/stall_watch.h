#ifndef GMB_BROKER_CORE_STALL_WATCH_H_
#define GMB_BROKER_CORE_STALL_WATCH_H_

#include <chrono>
#include <optional>

namespace gmb::broker {

// Says when the process was held up: stopped, frozen with its container, or not
// let run by a busy machine. What clients have said meanwhile waits in sockets,
// and every deadline seems to be over.
//
// Told of each turn, by the one who has the lock. A broker that has a pool takes
// one each second (the audit). Where nothing is due for longer, a gap is taken
// for a stall, and that does no harm: then nobody owes an answer.
class StallWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kLongestGap{2};

  // Whether this turn is the first one after a stall.
  [[nodiscard]] bool WasHeldUp(Time now) {
    const bool held_up = last_.has_value() && now - *last_ > kLongestGap;
    last_ = now;
    return held_up;
  }

 private:
  std::optional<Time> last_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_STALL_WATCH_H_
