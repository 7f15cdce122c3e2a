#ifndef GMB_BROKER_MACHINE_QUOTA_VIEW_H_
#define GMB_BROKER_MACHINE_QUOTA_VIEW_H_

#include "broker/machine/pool.h"
#include "broker/machine/state.h"
#include "gmb/v1/types.pb.h"
#include "quota/units.h"

namespace gmb::broker {

// A tenant's quota and use on a pool, as its clients are told.
[[nodiscard]] v1::QuotaView View(const State& state, quota::TenantId tenant,
                                 const Pool& pool);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_QUOTA_VIEW_H_
