#ifndef GMB_BENCH_QUANTILE_H_
#define GMB_BENCH_QUANTILE_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gmb::bench {

// The value below which this share of them lies; 0 when there are none.
[[nodiscard]] inline double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const size_t at =
      static_cast<size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at),
                   values.end());
  return values[at];
}

}  // namespace gmb::bench

#endif  // GMB_BENCH_QUANTILE_H_
