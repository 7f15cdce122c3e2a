#ifndef GMB_BENCH_BROKER_SCALE_OPTIONS_H_
#define GMB_BENCH_BROKER_SCALE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace gmb::bench {

// How large the broker is, and how long it is measured.
struct ScaleOptions {
  std::string gmbd;
  std::string gmb;  // empty: this program asks as the command does
  uint32_t tenants = 1000;
  uint32_t sessions = 1000;  // one a tenant, while tenants last
  uint32_t leases = 8000;    // at most; open files may allow fewer
  uint32_t processes = 8;    // that hold the sessions
  uint32_t demands = 100;    // standing ones, when it is loaded
  int pairs = 5;             // of a calm turn and a loaded one
  double seconds = 3;        // of acquiring, a turn
  int commands = 10;         // of each kind, a turn
  double idle_seconds = 10;
  bool second_pool = true;  // one that shrinks and drains
};

// INVALID_ARGUMENT: the command line is wrong, or asks for help; the message is
// the help.
[[nodiscard]] absl::StatusOr<ScaleOptions> ParseScaleOptions(int argc,
                                                             char** argv);

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_SCALE_OPTIONS_H_
