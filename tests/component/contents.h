#ifndef GMB_TESTS_COMPONENT_CONTENTS_H_
#define GMB_TESTS_COMPONENT_CONTENTS_H_

#include <cstdint>

#include "gmb/lease.h"

namespace gmb::component {

// The contents that tenants of a test write: words that tell whose they are,
// which writing they are of, and where they belong.
[[nodiscard]] inline uint64_t Word(uint64_t tag, uint64_t seed,
                                   uint64_t index) {
  const uint64_t mixed = (seed + index) * 0x9E3779B97F4A7C15U;
  return (tag << 56) | (mixed >> 8);
}
[[nodiscard]] inline uint64_t TagOf(uint64_t word) { return word >> 56; }

// The words of a lease of host memory.
[[nodiscard]] inline uint64_t* Words(const Lease& lease) {
  return static_cast<uint64_t*>(lease.data());
}
[[nodiscard]] inline uint64_t CountWords(const Lease& lease) {
  return lease.size_bytes() / sizeof(uint64_t);
}

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_CONTENTS_H_
