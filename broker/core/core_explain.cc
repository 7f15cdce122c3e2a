// Why things are as they are: for `gmb why` and `gmb doctor`.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/core/core.h"
#include "broker/core/refusals.h"
#include "broker/core/wire_form.h"
#include "proto/amount_text.h"

namespace gmb::broker {
namespace {

v1::Finding NewFinding(v1::Finding::Severity severity,
                       absl::string_view subject, std::string message) {
  v1::Finding finding;
  finding.set_severity(severity);
  finding.set_subject(std::string(subject));
  finding.set_message(std::move(message));
  return finding;
}

// Of handles or sessions, which both cost files.
v1::Finding UseOf(absl::string_view what, uint64_t used, uint64_t most,
                  absl::string_view verb, absl::string_view advice) {
  const bool few_left = used * 10 > most * 9;
  return NewFinding(few_left ? v1::Finding::WARNING : v1::Finding::OK, what,
                    absl::StrCat(used, " of ", most, " ", what, " are ", verb,
                                 few_left ? advice : ""));
}

// Of bytes that do not come back by themselves.
std::string StuckText(const StuckBytes& stuck) {
  return absl::StrCat(
      proto::FormatBytes(stuck.bytes),
      " were released and do not come back by themselves: ", stuck.why);
}

}  // namespace

// What its waiting requests wait for, and who is before them or in their way.
std::vector<std::string> Core::WaitFindings(
    const quota::Explanation& explanation) const {
  std::vector<std::string> findings;
  for (const quota::WaitingView& waiting : explanation.waiting) {
    if (waiting.blocked_by == quota::Reason::kTenantLimit) {
      findings.push_back(absl::StrCat(
          "a request of ", proto::FormatBytes(waiting.bytes),
          " waits for its own limit: ",
          proto::FormatBytes(waiting.deficit_bytes),
          " of its own leases must be released, or the limit raised"));
    } else if (waiting.claimed) {
      findings.push_back(absl::StrCat(
          "a request of ", proto::FormatBytes(waiting.bytes),
          " waits for its turn: it fits what is free, and that is kept for "
          "requests that are served first"));
    } else {
      findings.push_back(absl::StrCat(
          "a request of ", proto::FormatBytes(waiting.bytes),
          " waits for memory: ", proto::FormatBytes(waiting.deficit_bytes),
          " more must be released by others"));
    }
  }
  for (const quota::ClaimView& claim : explanation.claims) {
    const Tenant* owner = tenants_.Find(claim.tenant);
    if (owner == nullptr) continue;
    const std::string waits = absl::StrCat(owner->policy.name, " waits for ",
                                           proto::FormatBytes(claim.bytes));
    if (claim.within_guarantee) {
      findings.push_back(absl::StrCat(
          waits, " within its guarantee: nobody borrows what that needs"));
      continue;
    }
    const quota::Nanoseconds left =
        std::max(claim.until - deps_.clock->Now(), quota::Nanoseconds(0));
    findings.push_back(absl::StrCat(
        waits,
        " and claims what comes free: requests behind it that would take of "
        "that pass again in ",
        absl::FormatDuration(
            absl::Ceil(absl::FromChrono(left), absl::Milliseconds(100)))));
  }
  if (!explanation.waiting.empty() && explanation.waiting_before > 0) {
    findings.push_back(
        absl::StrCat(explanation.waiting_before,
                     " requests of other tenants are served first"));
  }
  if (!explanation.waiting.empty()) {
    for (const quota::Borrower& borrower : explanation.borrowers) {
      const Tenant* other = tenants_.Find(borrower.tenant);
      if (other == nullptr) continue;
      findings.push_back(absl::StrCat(
          other->policy.name, " borrows ",
          proto::FormatBytes(borrower.borrowed_bytes), " above its guarantee"));
    }
  }
  return findings;
}

// Sentences about one tenant on one pool, most important first.
void Core::AddFindings(const Tenant& tenant, const Pool& pool,
                       const quota::Explanation& explanation,
                       v1::ExplainResponse* response) const {
  const quota::TenantPoolView view = *engine_.TenantPool(tenant.id, pool.id);
  auto add = [&](const std::string& sentence) {
    response->add_findings(absl::StrCat(pool.uuid(), ": ", sentence));
  };
  if (!pool.problem.empty()) add(pool.problem);
  if (explanation.draining) add("the pool is draining and makes no new grants");
  if (view.over_limit_bytes > 0) {
    add(absl::StrCat("over its limit by ",
                     proto::FormatBytes(view.over_limit_bytes),
                     ": new requests are refused until that is released"));
  }
  if (view.effective_guarantee_bytes < view.requested_guarantee_bytes) {
    add(absl::StrCat(
        "its guarantee is pending: ",
        proto::FormatBytes(view.effective_guarantee_bytes), " of ",
        proto::FormatBytes(view.requested_guarantee_bytes),
        " are in force; the rest is held by others and comes as they release"));
  }
  const auto stuck = pool.reading.stuck.find(tenant.id);
  const uint64_t stuck_bytes =
      stuck == pool.reading.stuck.end() ? 0 : stuck->second.bytes;
  if (stuck_bytes > 0) add(StuckText(stuck->second));
  if (view.unreturned_bytes > stuck_bytes) {
    add(absl::StrCat(proto::FormatBytes(view.unreturned_bytes - stuck_bytes),
                     " were released but are still held by one of its "
                     "processes; they are charged "
                     "to it and come back when that process lets go or dies"));
  }
  if (view.unreturned_bytes > 0 && pool.reading.unreturned_outside_bytes > 0) {
    add(absl::StrCat(
        "of all unreturned bytes the driver shows ",
        proto::FormatBytes(pool.reading.unreturned_outside_bytes),
        " in processes without a session, which took them while they changed "
        "hands; `gmb doctor` names these: end them"));
  }
  for (const std::string& sentence : WaitFindings(explanation)) add(sentence);
  if (explanation.kept_for_guarantees_bytes > 0) {
    add(absl::StrCat(proto::FormatBytes(explanation.kept_for_guarantees_bytes),
                     " are free but kept for the guarantees of other tenants"));
  }
  if (explanation.missing_bytes > 0) {
    add(absl::StrCat(
        proto::FormatBytes(explanation.missing_bytes),
        " of the pool are missing: processes outside the broker took them, or "
        "clients of deleted tenants keep them; `gmb doctor` says which"));
  }
  if (explanation.shrinking_bytes > 0) {
    add(absl::StrCat("the pool is shrinking: ",
                     proto::FormatBytes(explanation.shrinking_bytes),
                     " are still to be released"));
  }
  if (explanation.waiting.empty()) {
    add(absl::StrCat("no request waits for memory; ",
                     proto::FormatBytes(view.obtainable_bytes),
                     " could be leased at once"));
  }
}

absl::StatusOr<v1::ExplainResponse> Core::Explain(
    absl::string_view tenant_name) const {
  ipc::MutexLock lock(&mu_);
  const Tenant* tenant = tenants_.Find(tenant_name);
  if (tenant == nullptr) return NoSuchTenant(tenant_name);
  v1::ExplainResponse response;
  *response.mutable_tenant() = Report(*tenant);
  const quota::Instant now = deps_.clock->Now();
  for (const auto& [id, pool] : pools_) {
    const std::optional<quota::Explanation> explanation =
        engine_.Explain(tenant->id, id);
    if (!explanation.has_value()) continue;
    for (const quota::WaitingView& waiting : explanation->waiting) {
      v1::WaitingRequest* request = response.add_waiting();
      request->set_session_id(waiting.session.value);
      request->set_device(pool->uuid());
      request->set_bytes(waiting.bytes);
      *request->mutable_waited() = ToProto(now - waiting.since);
      *request->mutable_remaining() = ToProto(waiting.deadline - now);
      request->set_blocked_by(ToProto(waiting.blocked_by));
      request->set_deficit_bytes(waiting.deficit_bytes);
    }
    AddFindings(*tenant, *pool, *explanation, &response);
    AddReclaimFindings(*tenant, *pool, &response);
  }
  AddAttaching(*tenant, &response);
  return response;
}

void Core::AddUnreturnedDiagnosis(const Pool& pool,
                                  v1::DiagnoseResponse* response) const {
  uint64_t stuck_bytes = 0;           // of tenants
  uint64_t stuck_orphaned_bytes = 0;  // of tenants that were deleted
  for (const auto& [holder, stuck] : pool.reading.stuck) {
    const Tenant* tenant =
        holder.has_value() ? tenants_.Find(*holder) : nullptr;
    const std::string whose = tenant != nullptr
                                  ? absl::StrCat("tenant ", tenant->policy.name)
                              : holder.has_value() ? "of a deleted tenant"
                                                   : "of no tenant";
    *response->add_findings() =
        NewFinding(v1::Finding::PROBLEM, pool.uuid(),
                   absl::StrCat(whose, ": ", StuckText(stuck)));
    if (tenant != nullptr) {
      stuck_bytes += stuck.bytes;
    } else if (holder.has_value()) {
      stuck_orphaned_bytes += stuck.bytes;
    }
  }
  if (pool.orphaned_bytes > stuck_orphaned_bytes) {
    *response->add_findings() = NewFinding(
        v1::Finding::WARNING, pool.uuid(),
        absl::StrCat(
            proto::FormatBytes(pool.orphaned_bytes - stuck_orphaned_bytes),
            " of the pool are missing: clients of tenants that were "
            "deleted released them and still hold them; they come "
            "back when those processes end"));
  }
  const v1::PoolStatus status = Report(pool);
  if (status.unreturned_bytes() <= stuck_bytes) return;
  *response->add_findings() = NewFinding(
      v1::Finding::WARNING, pool.uuid(),
      absl::StrCat(proto::FormatBytes(status.unreturned_bytes() - stuck_bytes),
                   " were released but are still held by a client; `gmb "
                   "tenant list` shows "
                   "whose they are; processes without a session hold ",
                   proto::FormatBytes(status.unreturned_outside_bytes()),
                   " of them"));
}

v1::DiagnoseResponse Core::Diagnose() const {
  ipc::MutexLock lock(&mu_);
  v1::DiagnoseResponse response;
  auto add = [&](v1::Finding::Severity severity, absl::string_view subject,
                 std::string message) {
    *response.add_findings() =
        NewFinding(severity, subject, std::move(message));
  };
  for (const auto& [id, pool] : pools_) {
    const v1::PoolStatus status = Report(*pool);
    const bool is_host = pool->info().kind == device::DeviceKind::kHost;
    if (!pool->problem.empty())
      add(v1::Finding::PROBLEM, pool->uuid(), pool->problem);
    if (pool->missing_bytes > 0) {
      add(v1::Finding::PROBLEM, pool->uuid(),
          absl::StrCat(
              proto::FormatBytes(pool->missing_bytes),
              " of the pool are missing: processes outside the broker hold ",
              proto::FormatBytes(status.outside_bytes()),
              ", more than the headroom; find them with nvidia-smi, or raise "
              "--headroom"));
    } else if (!is_host &&
               status.headroom_left_bytes() < status.headroom_bytes() / 4) {
      add(v1::Finding::WARNING, pool->uuid(),
          absl::StrCat("the headroom is nearly used up: ",
                       proto::FormatBytes(status.headroom_left_bytes()), " of ",
                       proto::FormatBytes(status.headroom_bytes()),
                       " are left; each process needs about 0.5 GiB for its "
                       "CUDA context"));
    }
    AddUnreturnedDiagnosis(*pool, &response);
    add(v1::Finding::OK, pool->uuid(),
        absl::StrCat(pool->info().name, ": pool of ",
                     proto::FormatBytes(status.capacity_bytes()), ", ",
                     proto::FormatBytes(status.granted_bytes()), " granted"));
  }
  AddReclaimDiagnosis(&response);
  if (!options_.few_files.empty())
    add(v1::Finding::WARNING, "open files", options_.few_files);
  *response.add_findings() =
      UseOf("handles", engine_.handles(), options_.max_handles, "in use",
            ": raise --max-handles and the limit on open files, or use larger "
            "leases");
  *response.add_findings() =
      UseOf("sessions", sessions_.clients(), options_.max_sessions, "open",
            ": raise --max-sessions and the limit on open files");
  if (tenants_.size() == 0) {
    add(v1::Finding::WARNING, "tenants",
        "there is no tenant, so no process can lease memory: `gmb tenant set "
        "NAME --limit 50%`");
  }
  if (drain_until_.has_value()) {
    add(v1::Finding::WARNING, "broker",
        "the broker is draining: it makes no new grants");
  }
  return response;
}

}  // namespace gmb::broker
