// Usage: from the counters to the disk, in time.
#include "broker/usage/usage_ledger.h"

#include <algorithm>

#include "base/status_macros.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

constexpr absl::Duration kBetweenWrites = absl::Minutes(1);
// A day ends before the next one's first write.
constexpr absl::Duration kBeforeMidnight = absl::Milliseconds(100);

}  // namespace

UsageLedger::UsageLedger(metrics::EventCounts* counts, const Clock* clock,
                         std::unique_ptr<UsageStore> store)
    : counts_(counts),
      clock_(clock),
      store_(std::move(store)),
      timer_(clock, [this] { OnTime(); }) {
  counts_->KeepEnded();
  SetTimer();
}

UsageLedger::~UsageLedger() {
  timer_.Stop();
  const base::MutexLock lock(&mu_);
  Note(Write());
}

void UsageLedger::SetTimer() {
  const absl::Time now = clock_->WallTime();
  absl::Time next = NextDay(now) - kBeforeMidnight;
  if (next <= now) next = now + kBetweenWrites;
  timer_.Set(std::min(next, now + kBetweenWrites));
}

void UsageLedger::OnTime() {
  {
    const base::MutexLock lock(&mu_);
    Note(Write());
  }
  SetTimer();
}

absl::Status UsageLedger::Write() {
  for (const auto& [key, usage] :
       days_.Take(counts_->TakePeaks(), clock_->WallTime())) {
    unwritten_[key].Add(usage);
  }
  GMB_RETURN_IF_ERROR(store_->Add(unwritten_));
  unwritten_.clear();
  return absl::OkStatus();
}

void UsageLedger::Note(const absl::Status& written) {
  if (written.ok() == !failing_) return;
  failing_ = !written.ok();
  if (failing_) {
    LogEvent(LogLevel::kWarning, "usage_not_written",
             {{"message", written.message()}});
  } else {
    LogEvent(LogLevel::kInfo, "usage_written_again", {});
  }
}

absl::StatusOr<std::vector<std::pair<UsageKey, Usage>>> UsageLedger::List(
    int64_t since_day, const std::string& tenant,
    const std::optional<UsageKey>& after, size_t most) {
  const base::MutexLock lock(&mu_);
  // A full disk can be read.
  Note(Write());
  return store_->List(since_day, tenant, after, most);
}

}  // namespace gmb::broker
