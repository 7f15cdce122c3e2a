#ifndef GMB_BROKER_USAGE_USAGE_DAYS_H_
#define GMB_BROKER_USAGE_USAGE_DAYS_H_

#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "broker/metrics/event_counts.h"
#include "broker/usage/usage_row.h"

namespace gmb::broker {

using UsageRows = std::map<UsageKey, Usage>;

// The day of UTC that a time is in, since 1970-01-01; and how it is written:
// "2026-11-26".
[[nodiscard]] int64_t DayOf(absl::Time time);
[[nodiscard]] std::string DayText(int64_t day);
// When the day after that time begins.
[[nodiscard]] absl::Time NextDay(absl::Time time);

// Counters that only rise become rows of days. Not thread-safe.
class UsageDays {
 public:
  // The rise since the last call belongs to the day of `now`, so call it when a
  // day ends. Returns the new rows.
  [[nodiscard]] UsageRows Take(const metrics::Counts& counts, absl::Time now);

 private:
  // By tenant and device.
  using Totals = std::map<std::pair<std::string, std::string>, Usage>;
  Totals before_;  // as they were
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_USAGE_USAGE_DAYS_H_
