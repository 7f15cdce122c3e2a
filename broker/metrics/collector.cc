// Metrics: the broker, seen at one moment, as text.
#include "broker/metrics/collector.h"

#include <utility>

#include "broker/metrics/families.h"
#include "prometheus/text_serializer.h"

namespace gmb::broker::metrics {
namespace {

std::vector<v1::Tenant> AllTenants(const Core& core) {
  std::vector<v1::Tenant> tenants;
  v1::ListTenantsRequest request;
  do {
    absl::StatusOr<v1::ListTenantsResponse> page = core.Tenants(request);
    if (!page.ok()) break;  // our own tokens are not refused
    for (v1::Tenant& tenant : *page->mutable_tenants())
      tenants.push_back(std::move(tenant));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return tenants;
}

}  // namespace

// Counters before what is there now: a tenant that was made in between has none
// yet, and one that was deleted is left out.
Snapshot Collector::Take() const {
  Snapshot snapshot;
  snapshot.counts = sources_.events->Get();
  snapshot.status = sources_.core->Status();
  snapshot.tenants = AllTenants(*sources_.core);
  snapshot.sessions = sources_.core->SessionStates();
  snapshot.backed_bytes = sources_.core->BackedBytes();
  snapshot.disk = sources_.disk->Latest();
  snapshot.values_not_in_force = sources_.values_not_in_force();
  if (sources_.keeper != nullptr) snapshot.keeper = sources_.keeper();
  const HttpCounts& http = *sources_.http;
  snapshot.http.refused = http.refused;
  snapshot.http.answered = http.answered;
  snapshot.http.connections = http.connections;
  snapshot.http.hung_up_on = http.hung_up_on;
  return snapshot;
}

std::vector<prometheus::MetricFamily> Collector::Collect() const {
  return FamiliesOf(Take());
}

std::string Collector::Text() const {
  return prometheus::TextSerializer().Serialize(Collect());
}

std::shared_ptr<const std::string> Collector::RecentText() {
  base::MutexLock lock(&mu_);
  const auto now = std::chrono::steady_clock::now();
  if (recent_ == nullptr || now - recent_since_ >= kRecent) {
    recent_ = std::make_shared<const std::string>(Text());
    recent_since_ = now;
  }
  return recent_;
}

}  // namespace gmb::broker::metrics
