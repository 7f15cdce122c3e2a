#ifndef GMB_BROKER_DAEMON_STATUS_PAGES_H_
#define GMB_BROKER_DAEMON_STATUS_PAGES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "broker/config/broker_config.h"
#include "broker/core/clock.h"
#include "broker/core/core.h"
#include "broker/daemon/keeping.h"
#include "broker/http/server.h"
#include "broker/metrics/collector.h"
#include "broker/metrics/event_counts.h"
#include "broker/metrics/state_disk.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

// The things that the broker shows of itself: metrics, and the pages of --http.
class StatusPages {
 public:
  // All of them outlive it.
  struct Sources {
    const Core* core;
    const metrics::EventCounts* counts;
    QuotaStore* store;
    Keeping* keeping;  // null: there is none
    const Clock* clock;
    std::function<uint64_t()> values_not_in_force;
  };
  explicit StatusPages(Sources sources);

  // The text of the metrics, as of now. Any thread.
  [[nodiscard]] std::string MetricsText() const { return collector_.Text(); }

  // Where `config` has an address for it.
  absl::Status StartHttp(const BrokerConfig& config);
  // The broker is not ready any more.
  void BeginDrain() { draining_ = true; }
  void StopHttp() { http_.reset(); }

 private:
  HttpAnswer Answer(HttpPage page);

  std::atomic<bool> draining_{false};
  HttpCounts http_counts_;
  metrics::StateDisk state_disk_;
  metrics::Collector collector_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_STATUS_PAGES_H_
