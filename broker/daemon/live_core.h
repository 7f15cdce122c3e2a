#ifndef GMB_BROKER_DAEMON_LIVE_CORE_H_
#define GMB_BROKER_DAEMON_LIVE_CORE_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/config/broker_config.h"
#include "broker/core/clock.h"
#include "broker/core/core.h"
#include "broker/core/event_bus.h"
#include "broker/core/in_process_keeper.h"
#include "broker/core/ticker.h"
#include "broker/daemon/event_log.h"
#include "broker/daemon/keeping.h"
#include "broker/daemon/pool_setup.h"
#include "broker/declared/declared.h"
#include "broker/fd_limit.h"
#include "broker/metrics/event_counts.h"
#include "device/hostpool/host_pool.h"

namespace gmb::broker {

// The core of a broker, with all that works for it: its keeper, its host pool,
// its ticker, and those that log and count its events. In this order:
// PreparePools, OpenHostPool, Start, AddPools, Stop.
class LiveCore {
 public:
  // All of them outlive it.
  struct Deps {
    const BrokerConfig* config;
    const Clock* clock;
    EventBus* events;
    Keeping* keeping;  // null: all ends with the broker
  };
  explicit LiveCore(const Deps& deps);
  ~LiveCore() { Stop(); }
  LiveCore(const LiveCore&) = delete;
  LiveCore& operator=(const LiveCore&) = delete;

  // The configured devices, with the slabs that the last broker has left there.
  absl::StatusOr<std::vector<PreparedPool>> PreparePools(
      const Declared& declared);
  // For what is evicted from the pools, which get their copiers.
  absl::Status OpenHostPool(std::vector<PreparedPool>* pools);
  // The promises of the core are kept from here on.
  absl::Status Start(const FdPlan& plan, const std::string& tenants_dir);
  absl::Status AddPools(std::vector<PreparedPool> pools);
  // The core ends, and its devices. Its last events are still counted.
  void Stop();

  // Null before Start, and from Stop on.
  [[nodiscard]] Core* core() { return core_.get(); }
  // From Start on.
  [[nodiscard]] metrics::EventCounts* counts() { return event_counts_.get(); }

 private:
  [[nodiscard]] Keeper* keeper();
  absl::Status KeepAll(const FdPlan& plan);

  const Deps deps_;
  InProcessKeeper keeper_;  // without deps_.keeping
  std::atomic<SlabId> slab_ids_{1};
  std::unique_ptr<device::HostPool> host_pool_;  // null: none
  std::unique_ptr<EventLog> event_log_;
  std::unique_ptr<metrics::EventCounts> event_counts_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_LIVE_CORE_H_
