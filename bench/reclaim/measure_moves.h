#ifndef GMB_BENCH_RECLAIM_MEASURE_MOVES_H_
#define GMB_BENCH_RECLAIM_MEASURE_MOVES_H_

#include <string>

#include "absl/status/status.h"
#include "bench/device/peers.h"
#include "bench/device/plain_copy.h"
#include "bench/reclaim/figures.h"
#include "bench/reclaim/owner.h"
#include "bench/reclaim/stage.h"

namespace gmb::bench {

// What is measured, with what beside it, and where it goes.
struct Run {
  Stage* stage;
  PlainCopy* plain;
  Figures* figures;
  // Frees and allocates as many bytes, in a process of its own; in seconds, the
  // median. 0: it was not measured at this size.
  double free_and_allocate = 0;
  std::string free_and_allocate_name;
};

struct MovesPlan {
  std::string section;
  Owner::Leases leases;
  int rounds;
  Goal evict;
  Goal restore;
};

// In a full pool, an owner's leases are evicted for another tenant's request
// and come back when the owner enters a scope.
[[nodiscard]] absl::Status MeasureMoves(const Run& run, const MovesPlan& plan);

// The same with leases that are backed, so that nothing is copied out; and a
// request of this size that ready slabs serve.
[[nodiscard]] absl::Status MeasureBacked(const Run& run, const MovesPlan& plan);

}  // namespace gmb::bench

#endif  // GMB_BENCH_RECLAIM_MEASURE_MOVES_H_
