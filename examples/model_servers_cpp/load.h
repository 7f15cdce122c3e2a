#ifndef MODEL_SERVERS_LOAD_H_
#define MODEL_SERVERS_LOAD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "caller.h"

namespace model_servers {

struct Target {
  std::string name;
  int port = 0;
  std::map<uint64_t, uint64_t> expected_sums;  // by the rows of the batch
};

struct LoadOptions {
  uint64_t burst = 12;  // rows of a large batch
  uint64_t rounds = 3;
  absl::Duration together = absl::Seconds(5);
  uint64_t seed = 1;
};

// The outcomes of the requests to one server.
struct Tally {
  uint64_t requests = 0;
  uint64_t served = 0;
  uint64_t refused = 0;
  uint64_t failed = 0;
  uint64_t wrong = 0;  // served, with a sum that is not the reference's
  uint64_t met_evicted = 0;
  std::vector<absl::Duration> took;  // of those that were served
  std::string last_error;

  void Count(const Reply& reply, uint64_t expected_sum);
  void Add(const Tally& other);
};

// One for each target, in their order.
using Tallies = std::vector<Tally>;

// Single requests; one target after the other.
[[nodiscard]] Tallies Singles(const std::vector<Target>& targets,
                              const LoadOptions& options);
// Each in turn: a burst and two single requests, while the others are idle.
[[nodiscard]] Tallies BurstsInTurn(const std::vector<Target>& targets,
                                   const LoadOptions& options);
// All at the same time, for a while: mostly single requests and now and then a
// burst, with pauses between them.
[[nodiscard]] Tallies Together(const std::vector<Target>& targets,
                               const LoadOptions& options);

}  // namespace model_servers

#endif  // MODEL_SERVERS_LOAD_H_
