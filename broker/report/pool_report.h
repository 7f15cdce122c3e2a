#ifndef GMB_BROKER_REPORT_POOL_REPORT_H_
#define GMB_BROKER_REPORT_POOL_REPORT_H_

#include "broker/machine/pool.h"
#include "broker/machine/state.h"
#include "device/hostpool/host_pool.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker::report {

[[nodiscard]] v1::PoolStatus OfPool(const State& state, const Pool& pool);
// `host_pool` may be null.
[[nodiscard]] v1::HostPoolStatus OfHostPool(const State& state,
                                            const device::HostPool* host_pool);

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_POOL_REPORT_H_
