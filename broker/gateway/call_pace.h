#ifndef GMB_BROKER_GATEWAY_CALL_PACE_H_
#define GMB_BROKER_GATEWAY_CALL_PACE_H_

#include "base/mutex.h"
#include "broker/doors/token_bucket.h"

namespace gmb::broker {

// How fast the connections of a tenant's processes open calls, all of them
// together. A call costs gRPC a thousand times what it costs the client, and a
// tenant may have very many connections. Beyond the pace calls stay unread, and
// lose nothing by that. Thread-safe.
class CallPace {
 public:
  using Time = TokenBucket::Time;

  CallPace(double at_once, double a_second) : bucket_(at_once, a_second) {}

  // Whether a call may be read now.
  [[nodiscard]] bool AllowsOne(Time now) const {
    base::MutexLock lock(&mu_);
    return bucket_.Has(now);
  }
  // So many were read. They come many at once: the next ones wait longer then.
  void Count(double calls, Time now) {
    base::MutexLock lock(&mu_);
    if (bucket_.Take(now)) calls -= 1;
    bucket_.Spend(calls);
  }

 private:
  mutable base::Mutex mu_;
  TokenBucket bucket_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_GATEWAY_CALL_PACE_H_
