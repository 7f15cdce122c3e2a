#ifndef GMB_BROKER_SERVER_OUTSIDE_FINDINGS_H_
#define GMB_BROKER_SERVER_OUTSIDE_FINDINGS_H_

#include "broker/core/core.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// Adds who uses each GPU's memory past the broker, as NVML charges it: a hint
// for people, never a ground for a decision (NVML does not name a client that
// keeps a slab and its fd, nor processes outside our PID namespace). Asks the
// driver: never call it on gRPC's threads or under a lock.
void AddOutsideFindings(const Core& core, v1::DiagnoseResponse* response);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_OUTSIDE_FINDINGS_H_
