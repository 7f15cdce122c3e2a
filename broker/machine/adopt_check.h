#ifndef GMB_BROKER_MACHINE_ADOPT_CHECK_H_
#define GMB_BROKER_MACHINE_ADOPT_CHECK_H_

#include <set>

#include "absl/status/status.h"
#include "broker/machine/adoption.h"
#include "broker/machine/records.h"
#include "broker/machine/slab.h"
#include "broker/machine/state.h"

namespace gmb::broker {

// Drops the mappings of sessions that are not there. False: the lease has ended
// with them.
[[nodiscard]] bool KeepWhatLives(const State& state, LeaseRecord* record);

// Whether the lease can be taken over: its pool and tenant are there, its slabs
// were imported and are nobody else's, and its contents are somewhere. Adds its
// slabs to `taken`.
[[nodiscard]] absl::Status CheckRecord(const State& state,
                                       const LeaseRecord& record,
                                       const Adoption& adoption,
                                       std::set<SlabId>* taken);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_ADOPT_CHECK_H_
