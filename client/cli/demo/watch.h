#ifndef GMB_CLIENT_CLI_DEMO_WATCH_H_
#define GMB_CLIENT_CLI_DEMO_WATCH_H_

#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include "client/cli/demo/broker_process.h"
#include "client/cli/demo/monitor.h"

namespace gmb::cli {

// Watches a broker through its deaths: each that answers gets a monitor of its
// own, and what all of them found is kept. Used by one thread.
class Watch {
 public:
  // `broker` must outlive it; `stop` and `show` are the monitors'.
  Watch(const BrokerProcess* broker, std::stop_token stop,
        std::function<void(const Snapshot&)> show)
      : broker_(broker), stop_(std::move(stop)), show_(std::move(show)) {}

  // The broker answers (again).
  void Begin() {
    monitor_ = std::make_unique<Monitor>(&broker_->admin(), stop_, show_);
  }
  // Nobody asks it any more. Returns all that was found until now.
  Monitor::Findings End() {
    if (monitor_ != nullptr) findings_.Add(monitor_->findings());
    monitor_.reset();
    return findings_;
  }
  // Between the two.
  [[nodiscard]] Monitor& monitor() { return *monitor_; }

 private:
  const BrokerProcess* const broker_;
  const std::stop_token stop_;
  const std::function<void(const Snapshot&)> show_;
  std::unique_ptr<Monitor> monitor_;
  Monitor::Findings findings_;  // of the monitors before it
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_WATCH_H_
