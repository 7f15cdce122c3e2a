#ifndef GMB_BROKER_METRICS_DURATIONS_H_
#define GMB_BROKER_METRICS_DURATIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace gmb::broker::metrics {

// How long things took: half a millisecond to a minute, and longer.
struct Durations {
  static constexpr std::array<double, 16> kBounds = {
      0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
      0.25,   0.5,   1,      2.5,   5,    10,    30,   60};

  std::array<uint64_t, kBounds.size() + 1> counts{};  // the last: longer
  uint64_t count = 0;
  double sum_seconds = 0;

  void Add(double seconds) {
    size_t i = 0;
    while (i < kBounds.size() && seconds > kBounds[i]) ++i;
    ++counts[i];
    ++count;
    sum_seconds += seconds;
  }
};

}  // namespace gmb::broker::metrics

#endif  // GMB_BROKER_METRICS_DURATIONS_H_
