// Says which figures count as a leak in an hour of looks.
#include "bench/load/flatness.h"

#include <algorithm>
#include <cstddef>

#include "bench/quantile.h"

namespace gmb::bench {

Flatness FlatnessOf(const std::vector<double>& values, double share,
                    double slack) {
  const auto warm_up = static_cast<ptrdiff_t>(values.size() / 10);
  const ptrdiff_t third = (static_cast<ptrdiff_t>(values.size()) - warm_up) / 3;
  const auto begin = values.begin() + warm_up;
  Flatness flatness{
      .first = Quantile({begin, begin + third}, 0.5),
      .last = Quantile({values.end() - third, values.end()}, 0.5)};
  flatness.allowed = flatness.first + std::max(slack, share * flatness.first);
  return flatness;
}

}  // namespace gmb::bench
