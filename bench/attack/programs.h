#ifndef GMB_BENCH_ATTACK_PROGRAMS_H_
#define GMB_BENCH_ATTACK_PROGRAMS_H_

#include <string>

#include "absl/status/status.h"

namespace gmb::bench {

// Paths; an empty one is looked for.
struct Programs {
  std::string gmbd;
  std::string attacker;
};

// Looks where the build puts them. The error says what to build.
[[nodiscard]] absl::Status FindPrograms(Programs* programs);

}  // namespace gmb::bench

#endif  // GMB_BENCH_ATTACK_PROGRAMS_H_
