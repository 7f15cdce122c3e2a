#ifndef GMB_BENCH_LOAD_FLATNESS_H_
#define GMB_BENCH_LOAD_FLATNESS_H_

#include <vector>

namespace gmb::bench {

// Whether something that is looked at again and again has grown. Of the looks
// after the first tenth, the median of the last third may be above that of the
// first third by `share` of it or by `slack`, whichever is more.
struct Flatness {
  double first = 0;
  double last = 0;
  double allowed = 0;
  [[nodiscard]] bool flat() const { return last <= allowed; }
};
[[nodiscard]] Flatness FlatnessOf(const std::vector<double>& values,
                                  double share, double slack);

}  // namespace gmb::bench

#endif  // GMB_BENCH_LOAD_FLATNESS_H_
