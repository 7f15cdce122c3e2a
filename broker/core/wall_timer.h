#ifndef GMB_BROKER_CORE_WALL_TIMER_H_
#define GMB_BROKER_CORE_WALL_TIMER_H_

#include <functional>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "broker/core/clock.h"

namespace gmb::broker {

// Calls `due` on a thread of its own when the wall clock has reached a time,
// once for each time that is set. Within ten seconds of a clock that is set forward
// it is called for what is due by then, and of one that is set back it is called
// early: whoever is called looks at the clock and sets the next time.
class WallTimer {
 public:
  WallTimer(const Clock* clock, std::function<void()> due);
  ~WallTimer() { Stop(); }
  WallTimer(const WallTimer&) = delete;
  WallTimer& operator=(const WallTimer&) = delete;

  // In place of the one that was set; none: none.
  void Set(std::optional<absl::Time> next);
  // `due` is not running when it returns, and never will again.
  void Stop();

 private:
  void Run();

  const Clock* const clock_;
  const std::function<void()> due_;
  base::Mutex mu_;
  base::CondVar wake_;
  std::optional<absl::Time> next_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_WALL_TIMER_H_
