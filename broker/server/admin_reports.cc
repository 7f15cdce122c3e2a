// Operators look at the broker: the core's reports, and what is beside the core.
#include "broker/server/admin_reports.h"

#include <memory>

#include "broker/server/admin_audit.h"
#include "broker/server/admin_usage.h"
#include "broker/server/field_sources.h"
#include "broker/server/outside_findings.h"
#include "broker/server/state_findings.h"

namespace gmb::broker {
namespace {

// Copies a report into the response, or passes its refusal on.
template <typename T>
absl::Status Fill(absl::StatusOr<T> report, T* response) {
  if (!report.ok()) return report.status();
  *response = *std::move(report);
  return absl::OkStatus();
}

}  // namespace

absl::Status AdminReports::Status(v1::GetStatusResponse* response) const {
  *response = core_->Status();
  if (sources_.keeper_problem != nullptr)
    response->set_keeper_problem(sources_.keeper_problem());
  not_in_force_->AddTo(response);
  return absl::OkStatus();
}

absl::Status AdminReports::Tenant(const v1::GetTenantRequest& request,
                                  v1::Tenant* response) const {
  const absl::Status filled =
      Fill(core_->TenantReport(request.name()), response);
  if (filled.ok()) AddSources(*store_->Shown(), response);
  return filled;
}

absl::Status AdminReports::Tenants(const v1::ListTenantsRequest& request,
                                   v1::ListTenantsResponse* response) const {
  const absl::Status filled = Fill(core_->Tenants(request), response);
  if (request.without_fields()) return filled;
  const std::shared_ptr<const Declared> declared = store_->Shown();
  for (v1::Tenant& tenant : *response->mutable_tenants())
    AddSources(*declared, &tenant);
  return filled;
}

absl::Status AdminReports::Sessions(const v1::ListSessionsRequest& request,
                                    v1::ListSessionsResponse* response) const {
  return Fill(core_->Sessions(request), response);
}

absl::Status AdminReports::Leases(const v1::ListLeasesRequest& request,
                                  v1::ListLeasesResponse* response) const {
  return Fill(core_->Leases(request), response);
}

absl::Status AdminReports::Explain(const v1::ExplainRequest& request,
                                   v1::ExplainResponse* response) const {
  return Fill(core_->Explain(request), response);
}

absl::Status AdminReports::Diagnose(v1::DiagnoseResponse* response) const {
  *response = core_->Diagnose();
  AddOutsideFindings(*core_, response);
  AddStateFindings(store_, response);
  AddDropped(not_in_force_->values(), response);
  if (more_findings_ != nullptr) more_findings_(response);
  return absl::OkStatus();
}

absl::Status AdminReports::Audit(const v1::ListAuditRequest& request,
                                 v1::ListAuditResponse* response) const {
  return Fill(AuditPage(store_, request), response);
}

absl::Status AdminReports::Usage(const v1::ListUsageRequest& request,
                                 v1::ListUsageResponse* response) const {
  return Fill(UsagePage(sources_.usage, request), response);
}

std::string AdminReports::Metrics() const {
  return sources_.metrics ? sources_.metrics() : "";
}

}  // namespace gmb::broker
