#ifndef GMB_BROKER_MACHINE_RECORD_OF_H_
#define GMB_BROKER_MACHINE_RECORD_OF_H_

#include "broker/machine/lease.h"
#include "broker/machine/pool.h"
#include "broker/machine/records.h"
#include "broker/machine/session.h"
#include "broker/machine/state.h"

namespace gmb::broker {

// The things that a successor is to know: a tenant's session that has not
// ended, a lease that was announced and has not.
[[nodiscard]] bool IsRecorded(const Session& session);
[[nodiscard]] bool IsRecorded(const Lease& lease);

[[nodiscard]] PoolRecord RecordOf(const State& state, const Pool& pool);
[[nodiscard]] SessionRecord RecordOf(const State& state,
                                     const Session& session);
[[nodiscard]] LeaseRecord RecordOf(const State& state, const Lease& lease);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_RECORD_OF_H_
