#ifndef GMB_BROKER_SERVER_REQUEST_PACE_H_
#define GMB_BROKER_SERVER_REQUEST_PACE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "quota/units.h"

namespace gmb::broker {

// How fast a tenant's processes are read, all of them together. Their messages
// cost the broker far more than them: a frame of 16 KiB holds more than a
// thousand messages, and all who come later wait for them. No honest tenant
// comes near the pace. Beyond it the tenant's streams take turns, one after the
// other, so that the broker is never busy with it for long. Thread-safe.
class RequestPace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Options {
    double at_once = 10'000;
    double a_second = 20'000;
  };
  // So many messages are read in a turn.
  static constexpr uint32_t kTurn = 16;
  // A message counts as one more for each so many bytes, as it takes the longer
  // to read. Few honest ones have more.
  static constexpr size_t kBytesAMessage = 128;
  // From so many on, tenants at rest are forgotten now and then.
  static constexpr size_t kFirstForgotten = 64;

  explicit RequestPace(const Options& options);

  // A message to the tenant counts as so many further ones of it, up to a
  // second's worth ahead: many waits may end together.
  void Count(quota::TenantId tenant, int messages, Time now);

  // A stream has read a message of so many bytes, which has been counted as one:
  // what it counts beyond that is taken from what is left of the stream's turn,
  // and the rest from the tenant's next ones. How many it counts beyond one.
  uint32_t CountBytes(quota::TenantId tenant, size_t bytes, uint32_t* left,
                      Time now);

  // When a stream of the tenant may read its next kTurn messages: now, or then.
  [[nodiscard]] Time NextTurn(quota::TenantId tenant, Time now);

  // A stream has ended with so many of its last turn unread: they are the
  // tenant's again, or streams that come and go would put off its others.
  void GiveBack(quota::TenantId tenant, uint32_t messages, Time now);

  // That it remembers: those that sent much not long ago, and some others.
  [[nodiscard]] size_t tenants() const;

 private:
  [[nodiscard]] Time& NextOf(quota::TenantId tenant, Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetThoseAtRest(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::chrono::nanoseconds a_message_;
  const std::chrono::nanoseconds ahead_;  // of them, at once
  mutable base::Mutex mu_;
  std::map<quota::TenantId, Time> next_ ABSL_GUARDED_BY(mu_);
  // Tenants come and go for as long as the broker runs.
  size_t forget_at_ ABSL_GUARDED_BY(mu_) = kFirstForgotten;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_REQUEST_PACE_H_
