// Processes that may be killed and cannot be: for `gmb doctor`.
#include "broker/report/unkillable.h"

#include "absl/strings/str_cat.h"
#include "broker/report/new_finding.h"

namespace gmb::broker::report {

void Unkillable::Look(const State& state, Page* page) {
  const Session* session = state.sessions->FindAfter(NumberIn(page->after));
  for (size_t looks = 0; session != nullptr && looks < kLooksASlice; ++looks) {
    if (session->tenant.has_value() && !session->can_be_killed()) {
      const TenantPolicy& policy = state.TenantAt(*session->tenant).policy;
      if (policy.reclaim.may_terminate) {
        Found& found = by_tenant_[policy.name];
        if (++found.sessions == 1) found.first = session->id;
      }
    }
    page->after = KeyOf({session->id});
    session = state.sessions->FindAfter(session->id);
  }
  page->more = session != nullptr;
}

void Unkillable::AddFindings(v1::DiagnoseResponse* response) const {
  size_t shown = 0;
  for (const auto& [tenant, found] : by_tenant_) {
    if (shown++ == kMostAlike) break;
    const std::string more =
        found.sessions > 1
            ? absl::StrCat(" (and ", found.sessions - 1, " more of it)")
            : "";
    *response->add_findings() = NewFinding(
        v1::Finding::WARNING, tenant,
        absl::StrCat("session ", found.first, more,
                     " may be terminated, but the broker cannot kill its "
                     "process: share its PID namespace, and give gmbd CAP_KILL "
                     "where it is another user's"));
  }
  if (by_tenant_.size() <= kMostAlike) return;
  *response->add_findings() =
      NewFinding(v1::Finding::WARNING, "sessions",
                 absl::StrCat("likewise of ", by_tenant_.size() - kMostAlike,
                              " more tenants"));
}

}  // namespace gmb::broker::report
