#ifndef GMB_BROKER_SERVER_SWEEP_TIME_H_
#define GMB_BROKER_SERVER_SWEEP_TIME_H_

#include <chrono>
#include <optional>

namespace gmb::broker {

// When the handle server looks at all its peers next. Set while some peer may
// owe an acknowledgement, or left fds unread. A value without threads.
class SweepTime {
 public:
  using Clock = std::chrono::steady_clock;

  explicit SweepTime(Clock::duration interval) : interval_(interval) {}

  [[nodiscard]] std::optional<Clock::time_point> next() const { return next_; }
  [[nodiscard]] bool IsDue(Clock::time_point now) const {
    return next_.has_value() && *next_ <= now;
  }

  // These leave a time that is set as it is. After the interval: nearly always
  // there is nothing more to see by then.
  void SetSoon() { Set(Clock::now() + interval_); }
  void SetNow() { Set(Clock::now()); }
  // It has looked; `again`: there was something to wait for.
  void Done(bool again) {
    next_.reset();
    if (again) SetSoon();
  }

 private:
  void Set(Clock::time_point time) {
    if (!next_.has_value()) next_ = time;
  }

  const Clock::duration interval_;
  std::optional<Clock::time_point> next_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_SWEEP_TIME_H_
