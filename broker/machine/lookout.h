#ifndef GMB_BROKER_MACHINE_LOOKOUT_H_
#define GMB_BROKER_MACHINE_LOOKOUT_H_

#include <cstdint>

#include "broker/machine/index_keeper.h"
#include "broker/machine/look.h"
#include "broker/machine/session.h"
#include "broker/machine/state.h"
#include "quota/units.h"

namespace gmb::broker {

// How much of the leases is looked at in a turn, and which gates are watched
// while somebody lacks bytes.
class Lookout {
 public:
  Lookout(State& state, IndexKeeper& index) : state_(state), index_(index) {}

  void BeginTurn(quota::Instant now);
  void Spend(uint64_t leases);
  // Whether all have been looked at: see Look::GoOn.
  [[nodiscard]] bool GoOn(Look* look, quota::PoolId pool, quota::Instant now);
  // Sessions that were at work when somebody lacked bytes, and have parked.
  void WatchGates(quota::Instant now);
  // The session has ended.
  void Forget(const Session& session);

 private:
  State& state_;
  IndexKeeper& index_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_LOOKOUT_H_
