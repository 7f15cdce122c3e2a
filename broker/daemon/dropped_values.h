#ifndef GMB_BROKER_DAEMON_DROPPED_VALUES_H_
#define GMB_BROKER_DAEMON_DROPPED_VALUES_H_

#include "broker/core/core.h"
#include "broker/declared/declared.h"
#include "broker/server/state_findings.h"

namespace gmb::broker {

// The declared values that the broker started without: guarantees and pool sizes
// that do not fit any more, and values for devices that are not here. `core` has
// its pools and tenants.
[[nodiscard]] DroppedValues FindDropped(const Declared& declared,
                                        const Core& core);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_DROPPED_VALUES_H_
