// Usage: what the broker has counted, day by day.
#include "broker/usage/usage_days.h"

#include <algorithm>

#include "absl/time/civil_time.h"

namespace gmb::broker {
namespace {

Usage TotalOf(const metrics::DeviceCounts& counts) {
  Usage usage{.peak_bytes = counts.peak_bytes,
              .byte_seconds = counts.byte_seconds,
              .granted = counts.granted,
              .evictions = counts.evictions.done,
              .evicted_bytes = counts.evictions.bytes,
              .restores = counts.restores.done,
              .restored_bytes = counts.restores.bytes};
  for (const auto& [reason, times] : counts.refused) usage.refused += times;
  return usage;
}

// A tenant that was deleted and made anew begins at 0.
template <typename Number>
Number Rise(Number now, Number before) {
  return now < before ? now : now - before;
}

Usage Difference(const Usage& now, const Usage& before) {
  return {.peak_bytes = now.peak_bytes,
          .byte_seconds = Rise(now.byte_seconds, before.byte_seconds),
          .granted = Rise(now.granted, before.granted),
          .refused = Rise(now.refused, before.refused),
          .evictions = Rise(now.evictions, before.evictions),
          .evicted_bytes = Rise(now.evicted_bytes, before.evicted_bytes),
          .restores = Rise(now.restores, before.restores),
          .restored_bytes = Rise(now.restored_bytes, before.restored_bytes)};
}

}  // namespace

void Usage::Add(const Usage& more) {
  peak_bytes = std::max(peak_bytes, more.peak_bytes);
  byte_seconds += more.byte_seconds;
  granted += more.granted;
  refused += more.refused;
  evictions += more.evictions;
  evicted_bytes += more.evicted_bytes;
  restores += more.restores;
  restored_bytes += more.restored_bytes;
}

int64_t DayOf(absl::Time time) {
  return absl::ToCivilDay(time, absl::UTCTimeZone()) - absl::CivilDay();
}

std::string DayText(int64_t day) {
  return absl::FormatCivilTime(absl::CivilDay() + day);
}

absl::Time NextDay(absl::Time time) {
  return absl::FromCivil(absl::ToCivilDay(time, absl::UTCTimeZone()) + 1,
                         absl::UTCTimeZone());
}

UsageRows UsageDays::Take(const metrics::Counts& counts, absl::Time now) {
  UsageRows rows;
  std::map<std::pair<std::string, std::string>, Usage> totals;
  for (const auto& [name, tenant] : counts.tenants) {
    for (const auto& [uuid, device] : tenant.devices) {
      const auto key = std::make_pair(name, uuid);
      const Usage total = TotalOf(device);
      const auto was = before_.find(key);
      const Usage rise =
          was == before_.end() ? total : Difference(total, was->second);
      if (!rise.empty()) rows[{DayOf(now), name, uuid}] = rise;
      totals.emplace(key, total);
    }
  }
  before_ = std::move(totals);
  return rows;
}

}  // namespace gmb::broker
