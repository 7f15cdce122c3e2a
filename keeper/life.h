#ifndef GMB_KEEPER_LIFE_H_
#define GMB_KEEPER_LIFE_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>

namespace gmb::keeper {

using Time = std::chrono::steady_clock::time_point;

struct LifeOptions {
  // Without a broker for so long, all is given back. Zero: never.
  std::chrono::milliseconds abandon_after = std::chrono::minutes(10);
  // And after so long if no peer lives for whose sake it is kept: time for a
  // broker that is started again at once, and has leases that are kept without
  // a session.
  std::chrono::milliseconds linger = std::chrono::seconds(5);
};

// The facts that a keeper without a living broker knows.
struct LifeFacts {
  Time broker_died;
  size_t living_peers = 0;
  Time last_peer_died;  // if one has, since
};

// When all is to be given back, unless a broker comes; nothing: never. Pure.
inline std::optional<Time> GivesBackAt(const LifeOptions& options,
                                       const LifeFacts& facts) {
  std::optional<Time> at;
  if (options.abandon_after > std::chrono::milliseconds(0))
    at = facts.broker_died + options.abandon_after;
  if (facts.living_peers > 0) return at;
  const Time alone =
      std::max(facts.broker_died, facts.last_peer_died) + options.linger;
  return at.has_value() ? std::min(*at, alone) : alone;
}

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_LIFE_H_
