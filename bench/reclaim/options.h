#ifndef GMB_BENCH_RECLAIM_OPTIONS_H_
#define GMB_BENCH_RECLAIM_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace gmb::bench {

struct ReclaimOptions {
  std::string device;     // as gmbd's --device
  std::string pool;       // as gmbd's --pool; empty: its default
  std::string host_pool;  // as gmbd's --host-pool
  uint64_t bytes = 0;     // moved each round
  uint64_t large_bytes = 0;
  int rounds = 30;
  int section_seconds = 600;
  std::string sections;  // "moves,small,backed,neighbours,large"
  std::string log;       // keeps gmbd's log; empty: it is thrown away
  bool json = false;
  bool help = false;

  [[nodiscard]] bool Wants(const std::string& section) const;
};

extern const char kReclaimUsage[];

// Options that are left out are chosen for the machine: a GPU if there is one.
// The error says which argument was not understood.
[[nodiscard]] absl::StatusOr<ReclaimOptions> ParseReclaimOptions(int argc,
                                                                 char** argv);

}  // namespace gmb::bench

#endif  // GMB_BENCH_RECLAIM_OPTIONS_H_
