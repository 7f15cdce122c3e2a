#ifndef GMB_BASE_ROUND_UP_H_
#define GMB_BASE_ROUND_UP_H_

#include <cstdint>

namespace gmb::base {

// The least multiple of `step` that is at least `bytes`. The caller bounds
// `bytes`: near 2^64 the sum overflows.
constexpr uint64_t RoundUp(uint64_t bytes, uint64_t step) {
  return (bytes + step - 1) / step * step;
}

}  // namespace gmb::base

#endif  // GMB_BASE_ROUND_UP_H_
