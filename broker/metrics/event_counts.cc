// Metrics: events become counters.
#include "broker/metrics/event_counts.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace gmb::broker::metrics {
namespace {

double Seconds(const google::protobuf::Duration& took) {
  return static_cast<double>(took.seconds()) +
         static_cast<double>(took.nanos()) * 1e-9;
}

// The event says it in words, some of them a client's: a few of our own instead.
std::string CauseOf(absl::string_view message) {
  if (message == "it disconnected") return "disconnected";
  if (absl::StartsWith(message, "its process ended")) return "process_ended";
  if (absl::StartsWith(message, "it broke the protocol")) return "protocol";
  if (absl::StartsWith(message, "it did not acknowledge")) return "slow";
  if (message == "the broker stops") return "broker_stops";
  return "other";
}

void Settle(quota::Instant now, DeviceCounts* counts) {
  if (now > counts->since && counts->resident_bytes > 0) {
    counts->byte_seconds +=
        static_cast<double>(counts->resident_bytes) *
        std::chrono::duration<double>(now - counts->since).count();
  }
  counts->since = now;
}

void AddTo(const Moves& more, Moves* sum) {
  sum->done += more.done;
  sum->failed += more.failed;
  sum->bytes += more.bytes;
}

// Of a tenant that has ended, so that it holds nothing.
void AddTo(const DeviceCounts& more, DeviceCounts* sum) {
  sum->granted += more.granted;
  sum->granted_bytes += more.granted_bytes;
  sum->queued += more.queued;
  for (const auto& [reason, times] : more.refused)
    sum->refused[reason] += times;
  sum->released += more.released;
  sum->reclaimed += more.reclaimed;
  AddTo(more.evictions, &sum->evictions);
  AddTo(more.restores, &sum->restores);
  sum->byte_seconds += more.byte_seconds;
  sum->peak_bytes = std::max(sum->peak_bytes, more.peak_bytes);
}

}  // namespace

EventCounts::EventCounts(EventBus* bus, const Clock* clock)
    : bus_(bus), clock_(clock) {
  subscription_ = bus_->Subscribe([this](const v1::Event& event) {
    base::MutexLock lock(&mu_);
    Add(event);
  });
}

EventCounts::~EventCounts() { bus_->Unsubscribe(subscription_); }

void EventCounts::AddRefusedSession(const std::string& reason) {
  base::MutexLock lock(&mu_);
  ++counts_.sessions_refused[reason];
}

void EventCounts::AddAdopted(const v1::ListLeasesResponse& leases) {
  base::MutexLock lock(&mu_);
  for (const v1::LeaseInfo& lease : leases.leases()) {
    const bool is_away = lease.state() == v1::LeaseInfo::EVICTED ||
                         lease.state() == v1::LeaseInfo::RESTORING;
    if (is_away) {
      away_.insert(lease.id());
    } else {
      Hold(static_cast<int64_t>(lease.bytes()),
           &counts_.tenants[lease.tenant()].devices[lease.device()]);
    }
  }
}

void EventCounts::KeepEnded() {
  base::MutexLock lock(&mu_);
  keeps_ended_ = true;
}

Counts EventCounts::TakePeaks() {
  base::MutexLock lock(&mu_);
  Counts counts = AsOfNow();
  counts.ended = std::exchange(ended_, {});
  for (auto& [name, tenant] : counts_.tenants) {
    for (auto& [uuid, device] : tenant.devices)
      device.peak_bytes = device.resident_bytes;
  }
  return counts;
}

Counts EventCounts::Get() const {
  base::MutexLock lock(&mu_);
  return AsOfNow();
}

Counts EventCounts::AsOfNow() const {
  Counts counts = counts_;
  const quota::Instant now = clock_->Now();
  for (auto& [name, tenant] : counts.tenants) {
    for (auto& [uuid, device] : tenant.devices) Settle(now, &device);
  }
  return counts;
}

void EventCounts::Hold(int64_t bytes, DeviceCounts* counts) {
  Settle(clock_->Now(), counts);
  if (bytes >= 0) {
    counts->resident_bytes += static_cast<uint64_t>(bytes);
    counts->peak_bytes = std::max(counts->peak_bytes, counts->resident_bytes);
  } else {
    // An event that was missed may have been the one that brought them.
    counts->resident_bytes -=
        std::min(counts->resident_bytes, static_cast<uint64_t>(-bytes));
  }
}

void EventCounts::Add(const v1::Event& event) {
  ++counts_.events[event.kind()];
  counts_.missed += event.missed();
  if (event.kind() == "tenant_deleted") return End(event.tenant());
  if (!event.device().empty()) {
    MoveDurations& device = counts_.devices[event.device()];
    const double took = Seconds(event.took());
    if (event.kind() == "evicted") device.evictions.Add(took);
    if (event.kind() == "restored") device.restores.Add(took);
    if (event.kind() == "create_failed") ++device.create_failed;
    if (event.kind() == "backed") {
      ++device.backed;
      device.backed_bytes += event.bytes();
    }
  }
  if (event.tenant().empty()) return;
  TenantCounts* const tenant = &counts_.tenants[event.tenant()];
  AddToTenant(event, tenant);
  if (!event.device().empty()) AddToDevice(event, tenant);
}

void EventCounts::End(const std::string& tenant) {
  auto ended = counts_.tenants.extract(tenant);
  if (ended.empty() || !keeps_ended_) return;
  for (auto& [uuid, device] : ended.mapped().devices) {
    Settle(clock_->Now(), &device);
    AddTo(device, &ended_[{tenant, uuid}]);
  }
}

void EventCounts::AddToTenant(const v1::Event& event, TenantCounts* tenant) {
  const std::string& kind = event.kind();
  if (kind == "lease_granted") {
    tenant->waits.Add(Seconds(event.took()));
  } else if (kind == "session_opened") {
    ++tenant->sessions_opened;
  } else if (kind == "session_closed") {
    ++tenant->sessions_closed[CauseOf(event.message())];
  } else if (kind == "client_overdue") {
    ++tenant->overdue;
  } else if (kind == "terminated") {
    ++tenant->terminated;
  }
}

void EventCounts::AddToDevice(const v1::Event& event, TenantCounts* tenant) {
  const std::string& kind = event.kind();
  DeviceCounts* const device = &tenant->devices[event.device()];
  const auto bytes = static_cast<int64_t>(event.bytes());
  if (kind == "lease_granted") {
    ++device->granted;
    device->granted_bytes += event.bytes();
    Hold(bytes, device);
  } else if (kind == "lease_released" || kind == "lease_reclaimed") {
    ++(kind == "lease_released" ? device->released : device->reclaimed);
    if (away_.erase(event.lease_id()) == 0) Hold(-bytes, device);
  } else if (kind == "acquire_waiting") {
    ++device->queued;
  } else if (kind == "acquire_denied") {
    ++device->refused[event.message()];
  } else if (kind == "evicted") {
    ++device->evictions.done;
    device->evictions.bytes += event.bytes();
    if (away_.insert(event.lease_id()).second) Hold(-bytes, device);
  } else if (kind == "evict_failed") {
    ++device->evictions.failed;
  } else if (kind == "restored") {
    ++device->restores.done;
    device->restores.bytes += event.bytes();
    if (away_.erase(event.lease_id()) > 0) Hold(bytes, device);
  } else if (kind == "restore_failed") {
    ++device->restores.failed;
  }
}

}  // namespace gmb::broker::metrics
