#ifndef GMB_BROKER_REPORT_REPORT_H_
#define GMB_BROKER_REPORT_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/machine/state.h"
#include "broker/machine/verdict_walk.h"
#include "broker/report/page.h"
#include "device/hostpool/host_pool.h"
#include "gmb/v1/admin.pb.h"
#include "quota/units.h"

namespace gmb::broker::report {

// Reports for operators. Nothing here changes state.
//
// Each function is called under the core's lock and does so little that it may
// hold it: of a list, Add... adds at most `most_rows` rows after page->after,
// looks at no more than kLooksASlice things, and says how far it came.
//
// `host_pool`: null without one. An empty name of a tenant means all of them;
// one that is not there is NO_SUCH_TENANT.

// Without `started`.
[[nodiscard]] v1::GetStatusResponse Status(const State& state,
                                           const device::HostPool* host_pool);
[[nodiscard]] absl::StatusOr<v1::Tenant> OfTenant(const State& state,
                                                  absl::string_view name);
void AddTenants(const State& state, Page* page, size_t most_rows,
                v1::ListTenantsResponse* response);
[[nodiscard]] absl::Status AddLeases(const State& state,
                                     absl::string_view tenant, Page* page,
                                     size_t most_rows,
                                     v1::ListLeasesResponse* response);

// The sums over a session's leases, which may be more than one slice can look
// at: kept from slice to slice.
struct SessionSums {
  uint64_t session = 0;
  quota::LeaseId last{};  // that is in them
  uint64_t leased_bytes = 0;
  uint64_t evicted_bytes = 0;
  uint64_t backed_bytes = 0;
};
// Without `streaming`. Looks at each session's gate.
[[nodiscard]] absl::Status AddSessions(const State& state,
                                       absl::string_view tenant,
                                       quota::Instant now, Page* page,
                                       size_t most_rows, SessionSums* sums,
                                       v1::ListSessionsResponse* response);

// Why leases of others stay where they are takes more than one slice: kept from
// slice to slice.
struct WhyTheyStay {
  quota::PoolId pool{};  // that has been told of, but for this
  std::optional<VerdictWalk> walk;
  bool waits = false;  // for any of the pools
  bool done = false;
};
// For `gmb why`. The rows are the waiting requests; the first slices of the
// first page have all the rest.
[[nodiscard]] absl::Status AddExplanation(const State& state,
                                          absl::string_view tenant,
                                          quota::Instant now, Page* page,
                                          size_t most_rows, WhyTheyStay* why,
                                          v1::ExplainResponse* response);

// For `gmb doctor`: all but what has to be looked for session by session.
[[nodiscard]] v1::DiagnoseResponse Diagnose(const State& state,
                                            const device::HostPool* host_pool);

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_REPORT_H_
