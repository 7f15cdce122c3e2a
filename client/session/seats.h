#ifndef GMB_CLIENT_SESSION_SEATS_H_
#define GMB_CLIENT_SESSION_SEATS_H_

#include <optional>
#include <vector>

#include "base/mutex.h"
#include "client/session/session_wait.h"
#include "ipc/wakeup.h"

namespace gmb::internal {

// Where calls wait at the session's sockets and read them, in place of the
// session's thread, so that no other thread has to wake them. Thread-safe.
class Seats {
 public:
  using TimePoint = SessionWait::TimePoint;

  // Each message that comes wakes all who wait here, so there are few. It waits
  // for those who have one: leave it before anything that may take long.
  class Seat {
   public:
    // Keep `seats` as long.
    explicit Seat(Seats* seats);
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;
    ~Seat();

    // Wakes the thread that waits; null: there was no place, or no fd to spare.
    [[nodiscard]] ipc::Wakeup* wakeup() {
      return wakeup_.has_value() ? &*wakeup_ : nullptr;
    }

   private:
    Seats& seats_;
    std::optional<ipc::Wakeup> wakeup_;
  };

  // `wait` outlives it.
  explicit Seats(SessionWait* wait);
  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;
  ~Seats() = default;

  // With a seat's wakeup: blocks until a socket can be read or has hung up, the
  // wakeup is notified, or until `until`; it may return before. Does not sleep
  // before `polls_until`. Whether a socket is to be read.
  [[nodiscard]] bool Wait(ipc::Wakeup* wakeup, TimePoint polls_until,
                          std::optional<TimePoint> until) const {
    return wait_.WaitAtSockets(wakeup, polls_until, until);
  }

 private:
  SessionWait& wait_;
  base::Mutex mu_;
  int taken_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<ipc::Wakeup> spare_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_SEATS_H_
