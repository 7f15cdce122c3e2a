// How much a tenant will need soon.
#include "tests/quota/forecast.h"

#include <algorithm>
#include <cmath>

namespace gmb::quota {
namespace {

// After this many intervals of one constant need the trend is as good as gone:
// a long silence need not be walked through interval by interval.
constexpr int64_t kMostIntervals = 256;

}  // namespace

DemandForecast::DemandForecast(const ForecastOptions& options)
    : options_(options) {
  options_.interval = std::max(options_.interval, Nanoseconds(1));
  options_.level_gain = std::clamp(options_.level_gain, 0.0, 1.0);
  options_.trend_gain = std::clamp(options_.trend_gain, 0.0, 1.0);
}

void DemandForecast::Observe(uint64_t needed_bytes, Instant now) {
  Roll(now);
  needed_bytes_ = std::min(needed_bytes, kMaxPoolBytes);
  peak_bytes_ = std::max(peak_bytes_, needed_bytes_);
}

uint64_t DemandForecast::PeakBytes(Instant now, Nanoseconds ahead) {
  Roll(now);
  if (intervals_ == 0) return peak_bytes_;
  const double steps =
      1 + std::floor(static_cast<double>(std::max<int64_t>(ahead.count(), 0)) /
                     static_cast<double>(options_.interval.count()));
  return static_cast<uint64_t>(std::clamp(level_ + steps * trend_, 0.0,
                                          static_cast<double>(kMaxPoolBytes)));
}

void DemandForecast::Roll(Instant now) {
  if (!started_) {
    started_ = true;
    interval_start_ = now;
    return;
  }
  if (now < interval_start_) return;
  int64_t over = (now - interval_start_).count() / options_.interval.count();
  if (over > kMostIntervals) {
    // The first closes the interval under way; of the rest the last will do.
    interval_start_ =
        interval_start_ + (over - kMostIntervals) * options_.interval;
    over = kMostIntervals;
  }
  for (; over > 0; --over) {
    Smooth(static_cast<double>(peak_bytes_));
    peak_bytes_ = needed_bytes_;
    interval_start_ = interval_start_ + options_.interval;
  }
}

void DemandForecast::Smooth(double peak) {
  if (intervals_++ == 0) {
    level_ = peak;
    return;
  }
  const double level = options_.level_gain * peak +
                       (1 - options_.level_gain) * (level_ + trend_);
  trend_ = options_.trend_gain * (level - level_) +
           (1 - options_.trend_gain) * trend_;
  level_ = level;
}

}  // namespace gmb::quota
