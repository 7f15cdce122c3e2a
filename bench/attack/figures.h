#ifndef GMB_BENCH_ATTACK_FIGURES_H_
#define GMB_BENCH_ATTACK_FIGURES_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bench/attack/attack_round.h"

namespace gmb::bench {

// All rounds of one attack.
struct Figures {
  std::vector<double> attack_p50, attack_p99, control_p50, control_p99, ratios;
  double greeting_ms = 0, control_greeting_ms = 0;
  double status_ms = 0, control_status_ms = 0;
  double cores = 0;
  double broker_cores = 0, control_broker_cores = 0;
  Held peak, left;  // growth
  size_t ended = 0;
  std::vector<std::string> failures;
  std::string told;
};

void AddRound(const Round& attack, const Round& control, const Held& before,
              const Held& after, Figures* figures);

// Headings and values.
using Cells = std::vector<std::pair<std::string, std::string>>;

[[nodiscard]] Cells Row(const Figures& figures);

}  // namespace gmb::bench

#endif  // GMB_BENCH_ATTACK_FIGURES_H_
