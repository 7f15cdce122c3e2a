#ifndef GMB_BROKER_REPORT_SESSION_GATE_STATE_H_
#define GMB_BROKER_REPORT_SESSION_GATE_STATE_H_

#include "broker/machine/session.h"
#include "gmb/v1/admin.pb.h"
#include "quota/units.h"

namespace gmb::broker::report {

// The state of a session's gate now, for operators.
[[nodiscard]] v1::SessionInfo::Gate GateStateOf(const Session& session,
                                                quota::Instant now);

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_SESSION_GATE_STATE_H_
