#ifndef GMB_BROKER_METRICS_EVENT_COUNTS_H_
#define GMB_BROKER_METRICS_EVENT_COUNTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "broker/core/clock.h"
#include "broker/core/event_bus.h"
#include "broker/metrics/durations.h"
#include "gmb/v1/admin.pb.h"
#include "quota/units.h"

namespace gmb::broker::metrics {

// Counts of what has happened since the broker's start and no report says. All
// keys are bounded: names of tenants and devices that are there, and words of
// the broker's own.
struct Moves {
  uint64_t done = 0;
  uint64_t failed = 0;
  uint64_t bytes = 0;  // of those that were done
};
// Of a tenant, on one device.
struct DeviceCounts {
  uint64_t granted = 0;
  uint64_t granted_bytes = 0;
  uint64_t queued = 0;
  std::map<std::string, uint64_t> refused;  // by reason
  uint64_t released = 0;
  uint64_t reclaimed = 0;  // their sessions had ended
  Moves evictions;
  Moves restores;
  // The bytes that are leased and on the device, and these times seconds up to
  // `since`.
  uint64_t resident_bytes = 0;
  quota::Instant since{};
  double byte_seconds = 0;
  uint64_t peak_bytes =
      0;  // the most resident at once since the last TakePeaks
};
struct TenantCounts {
  std::map<std::string, DeviceCounts> devices;  // by UUID
  Durations waits;                              // from the request to its grant
  uint64_t sessions_opened = 0;
  std::map<std::string, uint64_t> sessions_closed;  // by cause
  uint64_t overdue = 0;
  uint64_t terminated = 0;
};
struct MoveDurations {
  Durations evictions;
  Durations restores;
  uint64_t backed = 0;
  uint64_t backed_bytes = 0;
  uint64_t create_failed = 0;
};
struct Counts {
  std::map<std::string, TenantCounts> tenants;
  std::map<std::string, MoveDurations> devices;      // by UUID
  std::map<std::string, uint64_t> events;            // by kind
  std::map<std::string, uint64_t> sessions_refused;  // by reason
  uint64_t missed = 0;  // events, which are in none of the others
  // Of TakePeaks alone, by tenant and device: what tenants had counted that were
  // deleted since the last one.
  std::map<std::pair<std::string, std::string>, DeviceCounts> ended;
};

// Counts the bus's events. Thread-safe.
class EventCounts {
 public:
  // Both outlive it.
  EventCounts(EventBus* bus, const Clock* clock);
  ~EventCounts();
  EventCounts(const EventCounts&) = delete;
  EventCounts& operator=(const EventCounts&) = delete;

  // Of these the bus has not all: they are rate-limited.
  void AddRefusedSession(const std::string& reason);

  // Leases that an earlier broker granted: no event says so.
  void AddAdopted(const v1::ListLeasesResponse& leases);

  // From now on deleted tenants are kept for TakePeaks, which somebody has to
  // call from time to time.
  void KeepEnded();

  // As of now: byte-seconds too.
  [[nodiscard]] Counts Get() const;
  // The same, and the ended; peaks begin anew.
  [[nodiscard]] Counts TakePeaks();

 private:
  [[nodiscard]] Counts AsOfNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Add(const v1::Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddToDevice(const v1::Event& event, TenantCounts* tenant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddToTenant(const v1::Event& event, TenantCounts* tenant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(const std::string& tenant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Hold(int64_t bytes, DeviceCounts* counts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  EventBus* const bus_;
  const Clock* const clock_;
  mutable base::Mutex mu_;
  Counts counts_ ABSL_GUARDED_BY(mu_);
  bool keeps_ended_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::pair<std::string, std::string>, DeviceCounts> ended_
      ABSL_GUARDED_BY(mu_);
  // Leases that are off the device: what ends then holds nothing there.
  std::set<uint64_t> away_ ABSL_GUARDED_BY(mu_);
  uint64_t subscription_ = 0;
};

}  // namespace gmb::broker::metrics

#endif  // GMB_BROKER_METRICS_EVENT_COUNTS_H_
