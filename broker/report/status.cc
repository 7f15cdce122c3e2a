// The broker in one answer: for `gmb status`.
#include "broker/report/outside.h"
#include "broker/report/pool_report.h"
#include "broker/report/report.h"

namespace gmb::broker::report {

v1::GetStatusResponse Status(const State& state,
                             const device::HostPool* host_pool) {
  v1::GetStatusResponse status;
  status.set_broker_version(GMB_VERSION);
  status.set_draining(state.drain_until->has_value());
  for (const auto& [id, pool] : *state.pools)
    *status.add_pools() = OfPool(state, *pool);
  status.set_sessions(state.sessions->clients());
  status.set_leases(state.leases->size());
  status.set_handles(state.engine->handles());
  status.set_max_handles(state.options.max_handles);
  status.set_tenants(state.tenants->size());
  *status.mutable_host_pool() = OfHostPool(state, host_pool);
  AddOutside(state, status.mutable_outside());
  return status;
}

}  // namespace gmb::broker::report
