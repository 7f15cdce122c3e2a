#ifndef GMB_BROKER_MACHINE_GRANULARITY_H_
#define GMB_BROKER_MACHINE_GRANULARITY_H_

#include <cstdint>

namespace gmb::broker {

// `bytes` rounded up to a multiple of `granularity` (above 0); 0 when that does
// not fit 64 bits.
inline uint64_t RoundUp(uint64_t bytes, uint64_t granularity) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(bytes, granularity - 1, &sum)) return 0;
  return sum / granularity * granularity;
}

// `bytes` rounded down to a multiple of `granularity` (above 0).
inline uint64_t RoundDown(uint64_t bytes, uint64_t granularity) {
  return bytes / granularity * granularity;
}

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_GRANULARITY_H_
