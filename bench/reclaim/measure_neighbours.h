#ifndef GMB_BENCH_RECLAIM_MEASURE_NEIGHBOURS_H_
#define GMB_BENCH_RECLAIM_MEASURE_NEIGHBOURS_H_

#include "absl/status/status.h"
#include "bench/reclaim/measure_moves.h"

namespace gmb::bench {

// How much longer the kernels of another process take while an owner's leases
// are evicted, destroyed and scrubbed, and while they come back. Needs a GPU.
[[nodiscard]] absl::Status MeasureNeighbours(const Run& run,
                                             const MovesPlan& plan);

}  // namespace gmb::bench

#endif  // GMB_BENCH_RECLAIM_MEASURE_NEIGHBOURS_H_
