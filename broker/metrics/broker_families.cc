// Metrics: the broker itself, its host pool and its state on disk.
#include "absl/time/time.h"
#include "broker/metrics/families.h"

namespace gmb::broker::metrics {
namespace {

using prometheus::MetricType;
using Families = std::vector<prometheus::MetricFamily>;

void AddGauge(Families* families, absl::string_view name,
              absl::string_view help, double value) {
  FamilyBuilder(families, MetricType::Gauge, name, help).Add(value);
}

void AddGauge(Families* families, absl::string_view name,
              absl::string_view help, uint64_t value) {
  AddGauge(families, name, help, static_cast<double>(value));
}

void AddHostPool(const v1::HostPoolStatus& pool, Families* families) {
  AddGauge(families, "gmb_host_pool_bytes",
           "Host memory for the contents of evicted and backed leases; 0: "
           "there is none.",
           pool.bytes());
  if (pool.bytes() == 0) return;
  FamilyBuilder parts(families, MetricType::Gauge, "gmb_host_pool_part_bytes",
                      "Parts of the host pool; they overlap: prepared for "
                      "use, page-locked, not to be had, promised to leases, "
                      "given a place, and with true contents.");
  parts.Add(pool.prepared_bytes(), {{"part", "prepared"}});
  parts.Add(pool.locked_bytes(), {{"part", "locked"}});
  parts.Add(pool.failed_bytes(), {{"part", "failed"}});
  parts.Add(pool.reserved_bytes(), {{"part", "reserved"}});
  parts.Add(pool.placed_bytes(), {{"part", "placed"}});
  parts.Add(pool.held_bytes(), {{"part", "held"}});
}

void AddState(const Snapshot& snapshot, Families* families) {
  AddGauge(families, "gmb_values_not_in_force",
           "Tenants and pools with a stored value that the start left out: "
           "`gmb doctor` names them.",
           snapshot.values_not_in_force);
  if (!snapshot.disk.has_value()) return;
  AddGauge(families, "gmb_state_disk_ok",
           "Whether the state directory took a write when it was last looked "
           "at: operators' changes need it.",
           snapshot.disk->ok ? 1.0 : 0.0);
  AddGauge(families, "gmb_state_disk_check_timestamp_seconds",
           "When that was: at most once a minute, at a scrape.",
           absl::ToDoubleSeconds(snapshot.disk->at - absl::UnixEpoch()));
}

void AddKeeper(const Snapshot::Keeper& keeper, Families* families) {
  AddGauge(families, "gmb_keeper_up",
           "Whether the keeper has all that the next broker needs; 0: it is "
           "dead or silent.",
           keeper.up ? 1.0 : 0.0);
  AddGauge(families, "gmb_not_kept",
           "Sessions, leases and slabs that end with this broker, as the "
           "journal or the keeper is full.",
           keeper.left_out);
  AddGauge(families, "gmb_not_adopted",
           "Sessions of the last broker that could not go on with this one, "
           "and were hung up.",
           keeper.not_adopted);
}

void AddHttp(const Snapshot::Http& http, Families* families) {
  AddGauge(families, "gmb_http_connections", "Open connections to --http.",
           http.connections);
  FamilyBuilder requests(families, MetricType::Counter,
                         "gmb_http_requests_total", "Requests to --http.");
  requests.Add(http.answered - http.refused, {{"outcome", "answered"}});
  requests.Add(http.refused, {{"outcome", "refused"}});
  FamilyBuilder(families, MetricType::Counter, "gmb_http_hangups_total",
                "Connections to --http that took too long and were ended.")
      .Add(http.hung_up_on);
}

}  // namespace

void AddBrokerFamilies(const Snapshot& snapshot, Families* families) {
  const v1::GetStatusResponse& status = snapshot.status;
  FamilyBuilder(families, MetricType::Gauge, "gmb_build_info",
                "Always 1; says which version runs.")
      .Add(1.0, {{"version", status.broker_version()}});
  AddGauge(families, "gmb_start_time_seconds",
           "When the broker started, as a Unix time.",
           static_cast<double>(status.started().seconds()) +
               static_cast<double>(status.started().nanos()) * 1e-9);
  AddGauge(families, "gmb_draining",
           "Whether the broker stops: 1 after SIGTERM.",
           status.draining() ? 1.0 : 0.0);
  AddGauge(families, "gmb_sessions", "Client processes.", status.sessions());
  AddGauge(families, "gmb_leases", "Leases.", status.leases());
  AddGauge(families, "gmb_handles", "Slabs in leases.", status.handles());
  AddGauge(families, "gmb_handles_limit", "The most slabs in leases.",
           status.max_handles());
  AddGauge(families, "gmb_tenants", "Tenants.", status.tenants());
  AddHostPool(status.host_pool(), families);
  AddState(snapshot, families);
  if (snapshot.keeper.has_value()) AddKeeper(*snapshot.keeper, families);
  AddHttp(snapshot.http, families);
}

}  // namespace gmb::broker::metrics
