// Finds what is wrong, or could be better: for `gmb doctor`.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/report/new_finding.h"
#include "broker/report/pool_report.h"
#include "broker/report/report.h"
#include "broker/report/stuck_text.h"
#include "proto/amount_text.h"

namespace gmb::broker::report {
namespace {

// Of handles or sessions, which both cost files.
v1::Finding UseOf(absl::string_view what, uint64_t used, uint64_t most,
                  absl::string_view verb, absl::string_view advice) {
  const bool few_left = used * 10 > most * 9;
  return NewFinding(few_left ? v1::Finding::WARNING : v1::Finding::OK, what,
                    absl::StrCat(used, " of ", most, " ", what, " are ", verb,
                                 few_left ? advice : ""));
}

void AddUnreturnedDiagnosis(const State& state, const Pool& pool,
                            v1::DiagnoseResponse* response) {
  size_t shown = 0;
  uint64_t stuck_bytes = 0;           // of tenants
  uint64_t stuck_orphaned_bytes = 0;  // of tenants that were deleted
  for (const auto& [holder, stuck] : pool.device->reading.stuck) {
    const Tenant* tenant =
        holder.has_value() ? state.tenants->Find(*holder) : nullptr;
    const std::string whose = tenant != nullptr
                                  ? absl::StrCat("tenant ", tenant->policy.name)
                              : holder.has_value() ? "of a deleted tenant"
                                                   : "of no tenant";
    if (shown < kMostAlike) {
      ++shown;
      *response->add_findings() =
          NewFinding(v1::Finding::PROBLEM, pool.uuid(),
                     absl::StrCat(whose, ": ", StuckText(stuck)));
    }
    if (tenant != nullptr) {
      stuck_bytes += stuck.bytes;
    } else if (holder.has_value()) {
      stuck_orphaned_bytes += stuck.bytes;
    }
  }
  if (pool.device->reading.stuck.size() > shown) {
    *response->add_findings() = NewFinding(
        v1::Finding::PROBLEM, pool.uuid(),
        absl::StrCat("likewise of ", pool.device->reading.stuck.size() - shown,
                     " more tenants"));
  }
  if (pool.device->orphaned_bytes > stuck_orphaned_bytes) {
    *response->add_findings() = NewFinding(
        v1::Finding::WARNING, pool.uuid(),
        absl::StrCat(proto::FormatBytes(pool.device->orphaned_bytes -
                                        stuck_orphaned_bytes),
                     " of the pool are missing: clients of tenants that were "
                     "deleted released them and still hold them; they come "
                     "back when those processes end"));
  }
  const v1::PoolStatus status = OfPool(state, pool);
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

void AddHostPoolDiagnosis(const State& state, const device::HostPool* pool,
                          v1::DiagnoseResponse* response) {
  const v1::HostPoolStatus host_pool = OfHostPool(state, pool);
  if (!host_pool.problem().empty()) {
    *response->add_findings() =
        NewFinding(v1::Finding::WARNING, "host pool", host_pool.problem());
  } else if (host_pool.bytes() == 0) {
    *response->add_findings() = NewFinding(
        v1::Finding::OK, "host pool",
        "there is none, so that leases whose contents are to be kept "
        "stay on the device; host_pool in the configuration changes that");
  } else {
    *response->add_findings() = NewFinding(
        v1::Finding::OK, "host pool",
        absl::StrCat(proto::FormatBytes(host_pool.reserved_bytes()), " of ",
                     proto::FormatBytes(host_pool.bytes()), " are reserved"));
  }
}

}  // namespace

v1::DiagnoseResponse Diagnose(const State& state,
                              const device::HostPool* host_pool) {
  v1::DiagnoseResponse response;
  auto add = [&](v1::Finding::Severity severity, absl::string_view subject,
                 std::string message) {
    *response.add_findings() =
        NewFinding(severity, subject, std::move(message));
  };
  for (const auto& [id, pool] : *state.pools) {
    const v1::PoolStatus status = OfPool(state, *pool);
    const bool is_host = pool->info.kind == device::DeviceKind::kHost;
    if (!pool->device->problem.empty())
      add(v1::Finding::PROBLEM, pool->uuid(), pool->device->problem);
    if (pool->device->missing_bytes > 0) {
      add(v1::Finding::PROBLEM, pool->uuid(),
          absl::StrCat(
              proto::FormatBytes(pool->device->missing_bytes),
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
    AddUnreturnedDiagnosis(state, *pool, &response);
    add(v1::Finding::OK, pool->uuid(),
        absl::StrCat(pool->info.name, ": pool of ",
                     proto::FormatBytes(status.capacity_bytes()), ", ",
                     proto::FormatBytes(status.granted_bytes()), " granted"));
  }
  AddHostPoolDiagnosis(state, host_pool, &response);
  if (!state.options.few_files.empty())
    add(v1::Finding::WARNING, "open files", state.options.few_files);
  *response.add_findings() = UseOf(
      "handles", state.engine->handles(), state.options.max_handles, "in use",
      ": raise --max-handles and the limit on open files, or use larger "
      "leases");
  *response.add_findings() =
      UseOf("sessions", state.sessions->clients(), state.options.max_sessions,
            "open", ": raise --max-sessions and the limit on open files");
  if (state.tenants->size() == 0) {
    add(v1::Finding::WARNING, "tenants",
        "there is no tenant, so no process can lease memory: `gmb tenant set "
        "NAME --limit 50%`");
  }
  if (state.drain_until->has_value()) {
    add(v1::Finding::WARNING, "broker",
        "the broker is draining: it makes no new grants");
  }
  return response;
}

}  // namespace gmb::broker::report
