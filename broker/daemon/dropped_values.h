#ifndef GMB_BROKER_DAEMON_DROPPED_VALUES_H_
#define GMB_BROKER_DAEMON_DROPPED_VALUES_H_

#include "broker/core/core.h"
#include "broker/server/state_findings.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

// The values that operators stored and the broker started without: guarantees
// and pool sizes that do not fit any more, and values for devices that are not
// here. `core` has its pools and tenants.
[[nodiscard]] DroppedValues FindDropped(const StoredState& stored,
                                        const Core& core);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_DROPPED_VALUES_H_
