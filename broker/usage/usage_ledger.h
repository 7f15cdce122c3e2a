#ifndef GMB_BROKER_USAGE_USAGE_LEDGER_H_
#define GMB_BROKER_USAGE_USAGE_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "broker/core/clock.h"
#include "broker/core/wall_timer.h"
#include "broker/metrics/event_counts.h"
#include "broker/usage/usage_days.h"
#include "broker/usage/usage_store.h"

namespace gmb::broker {

// Puts down what tenants use, once a minute and when a day ends, on a thread of
// its own. Rows that the disk does not take are kept, and written later.
// Thread-safe; List waits for the disk.
class UsageLedger {
 public:
  // `counts` and `clock` outlive it.
  UsageLedger(metrics::EventCounts* counts, const Clock* clock,
              std::unique_ptr<UsageStore> store);
  // Writes what is left.
  ~UsageLedger();
  UsageLedger(const UsageLedger&) = delete;
  UsageLedger& operator=(const UsageLedger&) = delete;

  // Up to now, or to when the disk last took it. At most so many rows, in the
  // order of their keys, after that key; `tenant` empty: of all.
  absl::StatusOr<std::vector<std::pair<UsageKey, Usage>>> List(
      int64_t since_day, const std::string& tenant,
      const std::optional<UsageKey>& after, size_t most);

 private:
  void OnTime();
  void SetTimer();
  absl::Status Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Says once that the disk does not take it, and once that it does again.
  void Note(const absl::Status& written) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  metrics::EventCounts* const counts_;
  const Clock* const clock_;
  base::Mutex mu_;  // held while the disk is waited for
  const std::unique_ptr<UsageStore> store_ ABSL_PT_GUARDED_BY(mu_);
  UsageDays days_ ABSL_GUARDED_BY(mu_);
  UsageRows unwritten_ ABSL_GUARDED_BY(mu_);
  bool failing_ ABSL_GUARDED_BY(mu_) = false;
  WallTimer timer_;  // last: it uses the rest
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_USAGE_USAGE_LEDGER_H_
