#ifndef GMB_BROKER_MACHINE_LOOKOUT_H_
#define GMB_BROKER_MACHINE_LOOKOUT_H_

#include <cstdint>
#include <vector>

#include "broker/machine/look.h"
#include "broker/machine/session.h"
#include "broker/machine/state.h"
#include "quota/units.h"

namespace gmb::broker {

// How much of the leases is looked at in a turn, and which gates are watched
// while somebody lacks bytes.
class Lookout {
 public:
  explicit Lookout(State& state) : state_(state) {}

  void BeginTurn(quota::Instant now);
  void Spend(uint64_t leases);
  // Of a lease that is being taken.
  void CountTaken();
  // Whether all have been looked at: see Look::GoOn.
  [[nodiscard]] bool GoOn(Look* look, quota::PoolId pool, quota::Instant now);
  // Sessions that were at work when somebody lacked bytes, and have parked.
  [[nodiscard]] std::vector<uint64_t> Parked(quota::Instant now);
  // The session has ended, or turned its gate off.
  void Forget(const Session& session);

 private:
  State& state_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_LOOKOUT_H_
