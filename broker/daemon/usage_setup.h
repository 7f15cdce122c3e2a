#ifndef GMB_BROKER_DAEMON_USAGE_SETUP_H_
#define GMB_BROKER_DAEMON_USAGE_SETUP_H_

#include <memory>
#include <string>

#include "broker/core/clock.h"
#include "broker/metrics/event_counts.h"
#include "broker/usage/usage_ledger.h"

namespace gmb::broker {

// Puts down what tenants use, from now on. Null where its file cannot be opened:
// these are statistics, so the broker serves all the same, and the log says so.
[[nodiscard]] std::unique_ptr<UsageLedger> RecordUsage(
    const std::string& state_dir, metrics::EventCounts* counts,
    const Clock* clock);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_USAGE_SETUP_H_
