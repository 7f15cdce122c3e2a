#ifndef GMB_BROKER_REPORT_ATTACHING_H_
#define GMB_BROKER_REPORT_ATTACHING_H_

#include "broker/machine/state.h"
#include "broker/machine/tenant.h"
#include "gmb/v1/admin.pb.h"
#include "quota/units.h"

namespace gmb::broker::report {

// Which of the tenant's sessions wait to attach to its shared leases, for what,
// and what helps.
void AddAttaching(const State& state, const Tenant& tenant, quota::Instant now,
                  v1::ExplainResponse* response);

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_ATTACHING_H_
