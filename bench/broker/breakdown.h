#ifndef GMB_BENCH_BROKER_BREAKDOWN_H_
#define GMB_BENCH_BROKER_BREAKDOWN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "bench/broker/lease_rounds.h"
#include "device/allocator.h"

namespace gmb::bench {

// Where the time of "acquire + map" goes: the same rounds as MeasureFresh, by
// a session of tenant a that does the library's steps one by one.
[[nodiscard]] absl::Status MeasureBreakdown(const Bench& bench, uint64_t bytes,
                                            int rounds);

// One reading of the device's free figure, which the broker takes around
// every destroy. Beside the figures of a lease of `bytes`.
[[nodiscard]] absl::Status MeasureFreeReading(device::Allocator* allocator,
                                              uint64_t bytes, int rounds,
                                              Results* results);

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_BREAKDOWN_H_
