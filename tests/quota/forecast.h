// How much a tenant will need soon, from its needs so far: Holt's method (a
// level and a trend, both smoothed exponentially) over the peaks of fixed
// intervals. Pure; a few words of memory a tenant.
#ifndef GMB_TESTS_QUOTA_FORECAST_H_
#define GMB_TESTS_QUOTA_FORECAST_H_

#include <cstdint>

#include "quota/units.h"

namespace gmb::quota {

struct ForecastOptions {
  Nanoseconds interval = std::chrono::seconds(10);  // above 0
  double level_gain = 0.5;   // 0 to 1: weight of the newest peak
  double trend_gain = 0.25;  // 0 to 1
};

class DemandForecast {
 public:
  explicit DemandForecast(const ForecastOptions& options = {});

  // The tenant needs so many bytes from now on: resident ones that are in use,
  // and those that it waits for. Time that runs backwards is ignored.
  void Observe(uint64_t needed_bytes, Instant now);

  // The peak expected in the interval that lies `ahead` of now; 0 ahead is the
  // next one. Never below 0; before a whole interval was seen, the peak so far.
  uint64_t PeakBytes(Instant now, Nanoseconds ahead = Nanoseconds(0));

  uint64_t intervals() const { return intervals_; }  // seen whole

 private:
  void Roll(Instant now);
  void Smooth(double peak);

  ForecastOptions options_;
  bool started_ = false;
  Instant interval_start_{};
  uint64_t needed_bytes_ = 0;  // since the last observation
  uint64_t peak_bytes_ = 0;    // of the interval under way
  uint64_t intervals_ = 0;
  double level_ = 0;
  double trend_ = 0;  // bytes an interval
};

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_FORECAST_H_
