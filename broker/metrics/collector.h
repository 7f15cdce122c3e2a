#ifndef GMB_BROKER_METRICS_COLLECTOR_H_
#define GMB_BROKER_METRICS_COLLECTOR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "broker/core/core.h"
#include "broker/http/server.h"
#include "broker/metrics/event_counts.h"
#include "broker/metrics/snapshot.h"
#include "broker/metrics/state_disk.h"
#include "prometheus/collectable.h"

namespace gmb::broker::metrics {

// Looks at the broker when somebody asks, and keeps no series of its own: those
// of a tenant that was deleted are gone with it. Thread-safe.
class Collector : public prometheus::Collectable {
 public:
  // How old a text may be that is given to strangers: so many looks a second
  // they can cause at most.
  static constexpr std::chrono::milliseconds kRecent{1000};

  // All of them outlive it.
  struct Sources {
    const Core* core = nullptr;
    const EventCounts* events = nullptr;
    StateDisk* disk = nullptr;
    const HttpCounts* http = nullptr;
    std::function<uint64_t()> values_not_in_force;
    std::function<std::optional<Snapshot::Keeper>()> keeper;  // null: none
  };
  explicit Collector(Sources sources) : sources_(std::move(sources)) {}

  // Takes the core's lock many times, briefly.
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;
  // In Prometheus's text format, version 0.0.4.
  [[nodiscard]] std::string Text() const;
  [[nodiscard]] std::shared_ptr<const std::string> RecentText();

 private:
  [[nodiscard]] Snapshot Take() const;

  const Sources sources_;
  base::Mutex mu_;
  std::shared_ptr<const std::string> recent_ ABSL_GUARDED_BY(mu_);
  std::chrono::steady_clock::time_point recent_since_ ABSL_GUARDED_BY(mu_){};
};

}  // namespace gmb::broker::metrics

#endif  // GMB_BROKER_METRICS_COLLECTOR_H_
