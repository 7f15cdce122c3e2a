#ifndef GMB_BENCH_LOAD_WORKER_H_
#define GMB_BENCH_LOAD_WORKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/load/load_session.h"

namespace gmb::bench {

// A process of one tenant, with a thread for each of its sessions.
struct WorkerPlan {
  std::string socket_dir;  // the tenant's
  uint32_t sessions = 0;
  uint32_t first_slot = 0;  // of them in the Tally
  SessionPlan session;      // each session's, with a seed of its own
};

// The words that start it: this program with kWorkerFlag and the plan. The
// program's standard input is the memory of the Tally.
inline constexpr char kWorkerFlag[] = "--worker";
[[nodiscard]] std::vector<std::string> WorkerCommand(const WorkerPlan& plan);

// It ends with 0 once all sessions have found everything as it should be after
// the Tally said stop; with 4, at once, where one has not, and its last line
// says what was found.
[[nodiscard]] int RunWorker(int argc, char** argv);

}  // namespace gmb::bench

#endif  // GMB_BENCH_LOAD_WORKER_H_
