#ifndef GMB_BROKER_REPORT_TENANT_REPORT_H_
#define GMB_BROKER_REPORT_TENANT_REPORT_H_

#include "broker/machine/state.h"
#include "broker/machine/tenant.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker::report {

[[nodiscard]] v1::Tenant OfTenant(const State& state, const Tenant& tenant);

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_TENANT_REPORT_H_
