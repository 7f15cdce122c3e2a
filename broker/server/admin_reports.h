#ifndef GMB_BROKER_SERVER_ADMIN_REPORTS_H_
#define GMB_BROKER_SERVER_ADMIN_REPORTS_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "broker/core/core.h"
#include "broker/server/not_in_force.h"
#include "broker/store/quota_store.h"
#include "broker/usage/usage_ledger.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// The parts of the broker beside the core that operators ask about. Any function
// may be null.
struct ReportSources {
  // The text of GetMetrics, made on gRPC's threads.
  std::function<std::string()> metrics = {};
  // The problem of the keeper, empty if it has none: for `gmb status`, on
  // gRPC's threads.
  std::function<std::string()> keeper_problem = {};
  // The ledger that ListUsage reads, on the operators' thread. Null: nothing is
  // recorded.
  UsageLedger* usage = nullptr;
};

// Operators look, and change nothing. Diagnose, Audit and Usage wait for the
// disk or the driver, on the operators' thread; the rest is asked on gRPC's
// threads.
class AdminReports {
 public:
  // All of them must outlive it, the usage ledger too.
  AdminReports(Core* core, QuotaStore* store, const NotInForce* not_in_force,
               ReportSources sources)
      : core_(core),
        store_(store),
        not_in_force_(not_in_force),
        sources_(std::move(sources)) {}

  // More for `gmb doctor`, asked on the operators' thread.
  using AddFindings = std::function<void(v1::DiagnoseResponse*)>;
  void SetFindings(AddFindings more) { more_findings_ = std::move(more); }

  absl::Status Status(v1::GetStatusResponse* response) const;
  absl::Status Tenant(const v1::GetTenantRequest& request,
                      v1::Tenant* response) const;
  absl::Status Tenants(const v1::ListTenantsRequest& request,
                       v1::ListTenantsResponse* response) const;
  absl::Status Sessions(const v1::ListSessionsRequest& request,
                        v1::ListSessionsResponse* response) const;
  absl::Status Leases(const v1::ListLeasesRequest& request,
                      v1::ListLeasesResponse* response) const;
  absl::Status Explain(const v1::ExplainRequest& request,
                       v1::ExplainResponse* response) const;
  absl::Status Diagnose(v1::DiagnoseResponse* response) const;
  absl::Status Audit(const v1::ListAuditRequest& request,
                     v1::ListAuditResponse* response) const;
  absl::Status Usage(const v1::ListUsageRequest& request,
                     v1::ListUsageResponse* response) const;
  [[nodiscard]] std::string Metrics() const;

 private:
  Core* const core_;
  QuotaStore* const store_;
  const NotInForce* const not_in_force_;
  const ReportSources sources_;
  AddFindings more_findings_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ADMIN_REPORTS_H_
