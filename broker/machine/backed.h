#ifndef GMB_BROKER_MACHINE_BACKED_H_
#define GMB_BROKER_MACHINE_BACKED_H_

#include <cstdint>

#include "broker/machine/lease.h"
#include "broker/machine/state.h"

namespace gmb::broker {

// Whether the host pool has a true copy of all of the lease. A sealed lease's
// copy is true for ever; another's, as long as no scope has come in since it
// was made.
[[nodiscard]] bool IsBacked(const State& state, const Lease& lease);
// Of a lease that is being backed: its first slabs, whose copies are true.
[[nodiscard]] uint32_t BackedSlabs(const State& state, const Lease& lease);
[[nodiscard]] uint64_t BackedBytes(const State& state, const Lease& lease);
// Whether parked memory of the pool is copied ahead of need. Sealed memory is
// where somebody lacked bytes lately: elsewhere nobody will take it.
[[nodiscard]] bool BacksAhead(const State& state, const Pool& pool,
                              quota::Instant now);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_BACKED_H_
