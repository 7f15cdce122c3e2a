#ifndef GMB_BENCH_LOAD_SAMPLE_H_
#define GMB_BENCH_LOAD_SAMPLE_H_

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "bench/load/load_stage.h"

namespace gmb::bench {

// The figures of what a process takes of the machine.
struct ProcessFigures {
  double rss_mib = 0;
  double anonymous_mib = 0;  // of that: no file's, and nobody else's
  double fds = 0;            // 0 also where this user may not look (root may)
  double threads = 0;
};
[[nodiscard]] ProcessFigures FiguresOf(pid_t pid);

// A broker and its keeper at one moment.
struct Sample {
  double seconds = 0;  // since the start
  ProcessFigures broker;
  ProcessFigures keeper;
  double sessions = 0;
  double leases = 0;
  double slabs = 0;  // each is an entry of the keeper, and an fd of both
  double kept_entries = 0;
  double kept_mib = 0;  // of memory files
  double journal_records = 0;
  double journal_slots = 0;
  double shm_mib = 0;  // of /dev/shm, whoever uses it
};
[[nodiscard]] absl::StatusOr<Sample> TakeSample(const LoadStage& stage);

// A figure that may not grow, and what is no growth (see Flatness).
struct Watched {
  const char* name;
  double (*of)(const Sample& sample);
  double share;
  double slack;
};
inline constexpr Watched kWatched[] = {
    {"broker, anonymous MiB",
     [](const Sample& sample) { return sample.broker.anonymous_mib; }, 0.1, 8},
    {"broker, fds", [](const Sample& sample) { return sample.broker.fds; }, 0.1,
     8},
    {"broker, threads",
     [](const Sample& sample) { return sample.broker.threads; }, 0, 4},
    {"keeper, anonymous MiB",
     [](const Sample& sample) { return sample.keeper.anonymous_mib; }, 0.1, 4},
    {"keeper, fds", [](const Sample& sample) { return sample.keeper.fds; }, 0.1,
     8},
    {"keeper, threads",
     [](const Sample& sample) { return sample.keeper.threads; }, 0, 1},
    {"kept entries", [](const Sample& sample) { return sample.kept_entries; },
     0.1, 16},
    {"kept memory, MiB", [](const Sample& sample) { return sample.kept_mib; },
     0.1, 16},
    {"journal records",
     [](const Sample& sample) { return sample.journal_records; }, 0.1, 16},
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_LOAD_SAMPLE_H_
