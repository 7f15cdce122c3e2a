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

Usage Difference(const Usage& now, const Usage& before) {
  return {.peak_bytes = now.peak_bytes,
          // Sums of other parts may differ in the last place.
          .byte_seconds = std::max(0., now.byte_seconds - before.byte_seconds),
          .granted = now.granted - before.granted,
          .refused = now.refused - before.refused,
          .evictions = now.evictions - before.evictions,
          .evicted_bytes = now.evicted_bytes - before.evicted_bytes,
          .restores = now.restores - before.restores,
          .restored_bytes = now.restored_bytes - before.restored_bytes};
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
  Totals present;
  for (const auto& [name, tenant] : counts.tenants) {
    for (const auto& [uuid, device] : tenant.devices)
      present[{name, uuid}] = TotalOf(device);
  }
  // One that was deleted and made anew has begun at 0 again.
  Totals all = present;
  for (const auto& [key, device] : counts.ended) all[key].Add(TotalOf(device));
  UsageRows rows;
  for (const auto& [key, total] : all) {
    const auto was = before_.find(key);
    const Usage rise =
        was == before_.end() ? total : Difference(total, was->second);
    if (!rise.empty()) rows[{DayOf(now), key.first, key.second}] = rise;
  }
  before_ = std::move(present);
  return rows;
}

}  // namespace gmb::broker
