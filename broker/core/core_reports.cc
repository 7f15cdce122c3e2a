// Operators read: what the state is, a page at a time under the lock, and in
// the form of the wire.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/core/core.h"
#include "broker/machine/wire_form.h"
#include "broker/report/outside.h"
#include "broker/report/page.h"
#include "broker/report/report.h"
#include "broker/report/sums.h"
#include "broker/report/unkillable.h"
#include "proto/error_status.h"

namespace gmb::broker {

v1::GetStatusResponse Core::Status() const {
  base::MutexLock lock(&mu_);
  v1::GetStatusResponse status =
      report::Status(machine_.state(), deps_.host_pool);
  *status.mutable_started() = ToProto(started_);
  return status;
}

absl::StatusOr<v1::Tenant> Core::TenantReport(absl::string_view name) const {
  base::MutexLock lock(&mu_);
  return report::OfTenant(machine_.state(), name);
}

absl::StatusOr<v1::ListTenantsResponse> Core::Tenants(
    const v1::ListTenantsRequest& request) const {
  using Response = v1::ListTenantsResponse;
  return report::FillPage<Response>(
      {.list = "tenants", .numbers = 0}, request,
      [](const Response& response) -> auto& { return response.tenants(); },
      [this](report::Page* page, size_t most_rows, Response* response) {
        base::MutexLock lock(&mu_);
        report::AddTenants(machine_.state(), page, most_rows, response);
        return absl::OkStatus();
      });
}

absl::StatusOr<v1::ListSessionsResponse> Core::Sessions(
    const v1::ListSessionsRequest& request) const {
  using Response = v1::ListSessionsResponse;
  report::SessionSums sums;
  bool first = true;
  return report::FillPage<Response>(
      {.list = "sessions", .filter = request.tenant()}, request,
      [](const Response& response) -> auto& { return response.sessions(); },
      [&](report::Page* page, size_t most_rows, Response* response) {
        int row = response->sessions_size();
        base::MutexLock lock(&mu_);
        if (first && request.tenant().empty() && request.page_token().empty())
          report::AddOutside(machine_.state(), response->mutable_outside());
        first = false;
        const absl::Status added = report::AddSessions(
            machine_.state(), request.tenant(), deps_.clock->Now(), page,
            most_rows, &sums, response);
        for (; row < response->sessions_size(); ++row) {
          v1::SessionInfo* const session = response->mutable_sessions(row);
          if (const auto outbox = couriers_.OutboxOf(session->id()))
            session->set_streaming(outbox->streaming());
        }
        return added;
      });
}

absl::StatusOr<v1::SessionInfo> Core::SessionReport(uint64_t id) const {
  v1::ListSessionsResponse response;
  report::SessionSums sums;
  // The one after the id before it; a session of very many leases takes several
  // slices.
  for (report::Page page{.after =
                             report::KeyOf({id - std::min<uint64_t>(id, 1)})};
       page.more && response.sessions().empty() &&
       report::NumberIn(page.after) < id;) {
    base::MutexLock lock(&mu_);
    const absl::Status added =
        report::AddSessions(machine_.state(), "", deps_.clock->Now(), &page,
                            /*most_rows=*/1, &sums, &response);
    if (!added.ok()) return added;
  }
  if (response.sessions().empty() || response.sessions(0).id() != id) {
    return proto::MakeError(
        v1::BAD_STATE,
        absl::StrCat("no client process has this session, or no more: session=",
                     id),
        {.field = "id"});
  }
  return std::move(*response.mutable_sessions(0));
}

absl::StatusOr<v1::ListLeasesResponse> Core::Leases(
    const v1::ListLeasesRequest& request) const {
  using Response = v1::ListLeasesResponse;
  return report::FillPage<Response>(
      {.list = "leases", .filter = request.tenant()}, request,
      [](const Response& response) -> auto& { return response.leases(); },
      [&](report::Page* page, size_t most_rows, Response* response) {
        base::MutexLock lock(&mu_);
        return report::AddLeases(machine_.state(), request.tenant(), page,
                                 most_rows, response);
      });
}

absl::StatusOr<v1::ExplainResponse> Core::Explain(
    const v1::ExplainRequest& request) const {
  using Response = v1::ExplainResponse;
  report::WhyTheyStay why;
  return report::FillPage<Response>(
      {.list = "waiting requests", .filter = request.tenant(), .numbers = 2},
      request,
      [](const Response& response) -> auto& { return response.waiting(); },
      [&](report::Page* page, size_t most_rows, Response* response) {
        base::MutexLock lock(&mu_);
        return report::AddExplanation(machine_.state(), request.tenant(),
                                      deps_.clock->Now(), page, most_rows, &why,
                                      response);
      });
}

v1::DiagnoseResponse Core::Diagnose() const {
  v1::DiagnoseResponse response;
  {
    base::MutexLock lock(&mu_);
    response = report::Diagnose(machine_.state(), deps_.host_pool);
  }
  report::Unkillable unkillable;
  for (report::Page page; page.more;) {
    base::MutexLock lock(&mu_);
    unkillable.Look(machine_.state(), &page);
  }
  unkillable.AddFindings(&response);
  return response;
}

report::SessionStates Core::SessionStates() const {
  report::SessionStates states;
  for (report::Page page; page.more;) {
    base::MutexLock lock(&mu_);
    report::CountSessions(machine_.state(), deps_.clock->Now(), &page, &states);
  }
  return states;
}

std::map<std::pair<std::string, std::string>, uint64_t> Core::BackedBytes()
    const {
  report::BackedSums sums;
  for (report::Page page; page.more;) {
    base::MutexLock lock(&mu_);
    report::SumBacked(machine_.state(), &page, &sums);
  }
  std::map<std::pair<std::string, std::string>, uint64_t> named;
  base::MutexLock lock(&mu_);
  for (const auto& [at, bytes] : sums.bytes) {
    // It may have been deleted since.
    const Tenant* const tenant = machine_.state().tenants->Find(at.first);
    if (tenant == nullptr) continue;
    named[{tenant->policy.name, machine_.state().PoolAt(at.second).uuid()}] =
        bytes;
  }
  return named;
}

}  // namespace gmb::broker
