#ifndef GMB_BENCH_BROKER_SCALE_TURNS_H_
#define GMB_BENCH_BROKER_SCALE_TURNS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/broker/scale_options.h"
#include "bench/broker/scale_stage.h"

namespace gmb::bench {

// The times that users of the broker saw in one turn.
struct Turn {
  std::vector<double> acquire_ms;
  std::vector<double> tenant_set_ms;  // of the command
  std::vector<double> status_ms;      // likewise
  int failed = 0;
};
[[nodiscard]] Turn MeasureTurn(const ScaleOptions& options,
                               const ScaleStage& stage);

// In percent of a core, while nobody asks for anything.
[[nodiscard]] double IdleCpu(const ScaleOptions& options,
                             const ScaleStage& stage);

// The end of the fleet.
struct AfterKill {
  std::vector<double> status_ms;  // of the command, one after the other
  int failed = 0;                 // of those
  double back_s = -1;             // below 0: never
};
[[nodiscard]] AfterKill KillFleet(const ScaleOptions& options,
                                  ScaleStage* stage);

// A process that asks as `gmb status` or `gmb tenant set` does; `argv` is what
// MeasureTurn has given it.
inline constexpr char kAskFlag[] = "--ask";
[[nodiscard]] int Ask(int argc, char** argv);

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_SCALE_TURNS_H_
