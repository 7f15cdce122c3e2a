#ifndef GMB_BENCH_LOAD_LOAD_OPTIONS_H_
#define GMB_BENCH_LOAD_LOAD_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bench/flag_values.h"
#include "bench/load/load_session.h"

namespace gmb::bench {

// The clients of the load, their requests, and the sizes.
struct LoadOptions {
  std::string gmbd;
  std::string device = "host";
  uint32_t tenants = 6;
  uint32_t sessions = 24;
  uint32_t processes = 12;
  uint64_t seed = 0;  // 0: chosen, and printed
  Mix mix;
  uint32_t lease_mib = 4;  // a lease is up to so large
  uint32_t leases = 4;     // of a session, at most
  uint32_t pool_mib = 0;   // 0: half of what all would like to have
  absl::Duration pause;    // between two steps of a session, on average
  absl::Duration kill_client = absl::Seconds(2);  // on average; zero: never
};

inline constexpr char kLoadFlags[] =
    "  --gmbd PATH        [the one beside this program]\n"
    "  --device NAME      host, or a GPU as gmbd names it: cuda:0 [host]\n"
    "  --tenants N        [6]\n"
    "  --sessions N       of them [24]\n"
    "  --processes N      that have the sessions, of one tenant each [12]\n"
    "  --seed N           of all that is chosen at random [a new one; "
    "printed]\n"
    "  --mix A,R,W,I      how often a session acquires, releases, works in a\n"
    "                     scope, and is idle, so that it parks [3,2,6,3]\n"
    "  --lease-mib N      a lease has up to N MiB [4]\n"
    "  --leases N         of a session, at most [4]\n"
    "  --pool-mib N       the pool; the host pool has twice as much\n"
    "                     [half of what all sessions may have]\n"
    "  --pause TIME       between two steps of a session, on average [0]\n"
    "  --kill-client TIME SIGKILL to one of the processes so often, on\n"
    "                     average; 0: never [2s]\n";

// The flags above, to be read into `options`, which outlives them.
[[nodiscard]] FlagValues LoadFlags(LoadOptions* options);
// Chooses what was left open. INVALID_ARGUMENT where parts do not fit together.
[[nodiscard]] absl::Status Complete(LoadOptions* options);

}  // namespace gmb::bench

#endif  // GMB_BENCH_LOAD_LOAD_OPTIONS_H_
