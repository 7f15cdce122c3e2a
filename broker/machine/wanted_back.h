#ifndef GMB_BROKER_MACHINE_WANTED_BACK_H_
#define GMB_BROKER_MACHINE_WANTED_BACK_H_

#include <cstdint>
#include <vector>

#include "broker/machine/standing_demand.h"
#include "quota/units.h"

namespace gmb::broker {

struct State;

// All that the pool's size, its drain and its tenants' limits may want back.
[[nodiscard]] std::vector<StandingDemand> DemandsOf(const State& state,
                                                    quota::PoolId pool);

// In bytes, whatever is on its way back already.
[[nodiscard]] uint64_t StillWanted(const State& state,
                                   const StandingDemand& demand);
// Likewise, of trims. Hard memory goes as well where its program can spare it, so
// a shrink asks for trims also of what no lease that is taken would help with.
[[nodiscard]] uint64_t WantedOfTrims(const State& state,
                                     const StandingDemand& demand);
// Whether what is above limits of the shrinking pool is still being taken: a
// shrink takes the rest.
[[nodiscard]] bool LimitsTake(const State& state, const StandingDemand& shrink);
// Whether nothing more is going to be wanted. Sessions come back while a pool
// drains, or their tenant leaves; and what keeps a pool large may go.
[[nodiscard]] bool IsOver(const State& state, const StandingDemand& demand);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_WANTED_BACK_H_
