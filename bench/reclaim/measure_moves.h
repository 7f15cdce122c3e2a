#ifndef GMB_BENCH_RECLAIM_MEASURE_MOVES_H_
#define GMB_BENCH_RECLAIM_MEASURE_MOVES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/device/peers.h"
#include "bench/device/plain_copy.h"
#include "bench/reclaim/figures.h"
#include "bench/reclaim/owner.h"
#include "bench/reclaim/stage.h"

namespace gmb::bench {

// One run: what is measured, with what beside it, and where it goes.
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
  absl::Duration time;  // afterwards no further round begins
  Goal evict = {};
  Goal restore = {};
};

// The rounds of a section: a first one that warms up, then as many as were
// asked for and the time allows, but at least three.
class Rounds {
 public:
  explicit Rounds(const MovesPlan& plan)
      : rounds_(plan.rounds), until_(absl::Now() + plan.time) {}
  // Whether another one is to begin.
  [[nodiscard]] bool Next() {
    ++round_;
    return round_ <= rounds_ && (round_ <= 3 || absl::Now() < until_);
  }
  [[nodiscard]] bool warm() const { return round_ > 0; }

 private:
  const int rounds_;
  const absl::Time until_;
  int round_ = -1;
};

// In a full pool, an owner's leases are evicted for another tenant's request
// and come back when the owner enters a scope.
[[nodiscard]] absl::Status MeasureMoves(const Run& run, const MovesPlan& plan);

// The same with leases that are backed, so that nothing is copied out; and a
// request of this size that ready slabs serve.
[[nodiscard]] absl::Status MeasureBacked(const Run& run, const MovesPlan& plan);

}  // namespace gmb::bench

#endif  // GMB_BENCH_RECLAIM_MEASURE_MOVES_H_
