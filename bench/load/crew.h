#ifndef GMB_BENCH_LOAD_CREW_H_
#define GMB_BENCH_LOAD_CREW_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/load/load_session.h"
#include "bench/load/tally.h"
#include "bench/load/worker.h"
#include "client/cli/demo/child_process.h"

namespace gmb::bench {

struct CrewPlan {
  std::string socket_dir;  // the broker's
  std::string log_path;
  uint32_t tenants = 0;
  uint32_t sessions = 0;
  uint32_t processes = 0;  // of one tenant each
  SessionPlan session;     // each session's, but for tag and seed
  uint64_t seed = 0;
};

// The name of the tenant of that number, from 0.
[[nodiscard]] std::string LoadTenant(uint32_t number);

// All client processes. Used by one thread, and what it starts ends with that.
class Crew {
 public:
  // Returns when all sessions are open. `tally` outlives the crew.
  [[nodiscard]] static absl::StatusOr<Crew> Start(const CrewPlan& plan,
                                                  SharedTally* tally);

  [[nodiscard]] size_t size() const { return members_.size(); }
  [[nodiscard]] pid_t pid(size_t number) const;
  // SIGKILL; returns when it is dead.
  [[nodiscard]] absl::Status Kill(size_t number);
  // Another one in its place.
  [[nodiscard]] absl::Status Revive(size_t number);

  // The faults: processes that ended by themselves, which are followed by
  // others, and sessions that do not get on.
  [[nodiscard]] std::vector<std::string> Faults();
  // All verify, release and end. Returns the faults.
  [[nodiscard]] std::vector<std::string> Finish();

 private:
  struct Member {
    WorkerPlan plan;
    cli::ChildProcess process;
  };
  Crew(const CrewPlan& plan, SharedTally* tally)
      : plan_(plan), tally_(tally), random_(plan.seed) {}

  absl::StatusOr<cli::ChildProcess> Launch(const WorkerPlan& plan);
  void Forget(const WorkerPlan& plan);
  [[nodiscard]] bool AllAreUp() const;
  [[nodiscard]] std::string Stuck(const WorkerPlan& plan) const;

  CrewPlan plan_;
  SharedTally* tally_;
  std::mt19937_64 random_;
  std::vector<Member> members_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_LOAD_CREW_H_
