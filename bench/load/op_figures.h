#ifndef GMB_BENCH_LOAD_OP_FIGURES_H_
#define GMB_BENCH_LOAD_OP_FIGURES_H_

#include <string>

#include "bench/load/tally.h"

namespace gmb::bench {

// One line for each kind of call: how many there were, how many a second, and
// how long they took at the client. `beside_ms`, unless it is 0, is a round
// trip of an empty stream, to which the medians are set.
void PrintOps(Tally* tally, double seconds, double beside_ms);
// The rows of a JSON list.
[[nodiscard]] std::string OpsJson(Tally* tally, double seconds,
                                  double beside_ms);

}  // namespace gmb::bench

#endif  // GMB_BENCH_LOAD_OP_FIGURES_H_
