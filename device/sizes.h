#ifndef GMB_DEVICE_SIZES_H_
#define GMB_DEVICE_SIZES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace gmb::device {

// Checks of sizes that arrive from outside, the same for every kind of device.
// Each answers INVALID_ARGUMENT with what would be right.

// `bytes` is a positive multiple of the granularity.
[[nodiscard]] absl::Status CheckSize(uint64_t bytes,
                                     uint64_t granularity_bytes);

// One handle a slab, every slab of a proper size, and together exactly the
// range. Safe against sums that overflow.
[[nodiscard]] absl::Status CheckSlabs(size_t num_handles,
                                      absl::Span<const uint64_t> slab_bytes,
                                      uint64_t range_bytes,
                                      uint64_t granularity_bytes);

}  // namespace gmb::device

#endif  // GMB_DEVICE_SIZES_H_
