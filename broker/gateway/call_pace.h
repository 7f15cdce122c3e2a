#ifndef GMB_BROKER_GATEWAY_CALL_PACE_H_
#define GMB_BROKER_GATEWAY_CALL_PACE_H_

#include <chrono>
#include <deque>
#include <optional>

#include "base/mutex.h"
#include "broker/doors/token_bucket.h"

namespace gmb::broker {

// How fast the connections of a tenant's processes open calls, all of them
// together. A call costs gRPC a thousand times what it costs the client, and a
// tenant may have very many connections. Beyond the pace calls stay unread, and
// lose nothing by that. Their connections stand in line then: whoever came
// first is read first, and nobody is read before those who wait. Thread-safe.
class CallPace {
 public:
  using Time = TokenBucket::Time;
  // Tells one from another.
  using Connection = const void*;

  // One that is offered turns for so long, and reads nothing, lets the others
  // pass: it goes to the end of the line.
  static constexpr std::chrono::seconds kTurn{1};

  CallPace(double at_once, double a_second) : bucket_(at_once, a_second) {}

  // Whether a call of this connection may be read now: one call for each that
  // is before it in line may be as well.
  [[nodiscard]] bool AllowsOne(Connection connection, Time now) const;
  // So many were read. They come many at once: the next ones wait longer then.
  void Count(double calls, Time now);

  // Joins the end of the line, in which it does not stand yet.
  void Wait(Connection connection);
  // Whether it is the turn of this connection, which stands in line.
  [[nodiscard]] bool Offer(Connection connection, Time now);
  // It has read, or it has gone.
  void Leave(Connection connection);

  // Nobody waits, and what was read is made good: as if new.
  [[nodiscard]] bool AtRest(Time now) const;

 private:
  struct Place {
    Connection connection;
    std::optional<Time> offered_since = std::nullopt;
  };

  // Of a connection whose turn it is; nullopt: it stands further behind, or not
  // in line.
  [[nodiscard]] std::optional<size_t> PlaceOf(Connection connection,
                                              Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable base::Mutex mu_;
  TokenBucket bucket_ ABSL_GUARDED_BY(mu_);
  std::deque<Place> line_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_GATEWAY_CALL_PACE_H_
