#ifndef GMB_CLIENT_SESSION_BUSY_WAIT_H_
#define GMB_CLIENT_SESSION_BUSY_WAIT_H_

#include <algorithm>
#include <atomic>
#include <chrono>

namespace gmb::internal {

// How long a call polls its sockets before it sleeps at them, since a thread
// that sleeps is woken late. A broker on busy cores answers late, and needs
// them: then nobody polls.
//
// Thread-safe.
class BusyWait {
 public:
  using Duration = std::chrono::nanoseconds;

  static constexpr Duration kMost = std::chrono::microseconds(400);

  // Of the next call: as long as answers take now, and as long again.
  [[nodiscard]] Duration Length() const {
    const Duration last = last_.load(std::memory_order_relaxed);
    return last > kMost ? Duration::zero() : std::min(2 * last, kMost);
  }
  // A call was answered, or told something else, after so long.
  void Answered(Duration took) { last_.store(took, std::memory_order_relaxed); }

 private:
  std::atomic<Duration> last_{kMost};
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_BUSY_WAIT_H_
