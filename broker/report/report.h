#ifndef GMB_BROKER_REPORT_REPORT_H_
#define GMB_BROKER_REPORT_REPORT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/machine/state.h"
#include "device/host_pool.h"
#include "gmb/v1/admin.pb.h"
#include "quota/units.h"

namespace gmb::broker::report {

// What operators see. Nothing here changes state.
//
// `host_pool`: null without one. An empty name of a tenant means all of them;
// one that is not there is NO_SUCH_TENANT.

// Without `started`.
[[nodiscard]] v1::GetStatusResponse Status(const State& state,
                                           const device::HostPool* host_pool);
[[nodiscard]] absl::StatusOr<v1::Tenant> OfTenant(const State& state,
                                                  absl::string_view name);
[[nodiscard]] v1::ListTenantsResponse Tenants(const State& state);
// Without `streaming`. Looks at each session's gate.
[[nodiscard]] absl::StatusOr<v1::ListSessionsResponse> Sessions(
    const State& state, absl::string_view tenant, quota::Instant now);
[[nodiscard]] absl::StatusOr<v1::ListLeasesResponse> Leases(
    const State& state, absl::string_view tenant);
// For `gmb why`.
[[nodiscard]] absl::StatusOr<v1::ExplainResponse> Explain(
    const State& state, absl::string_view tenant, quota::Instant now);
// For `gmb doctor`.
[[nodiscard]] v1::DiagnoseResponse Diagnose(const State& state,
                                            const device::HostPool* host_pool);

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_REPORT_H_
