// Shows what memory ahead of need does to traces of four classes, in simulated
// time, beside the same traces without it:
//
//     ahead_replay [minutes] [seeds]
//
// One row a class and policy, of all seeds; docs/reclaim-study.md has the table
// and the rule by which the default is chosen.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/quota/reclaim_replay.h"

namespace {

using gmb::quota::MakeReclaimTrace;
using gmb::quota::Replay;
using gmb::quota::ReplayResult;
using gmb::quota::TraceClass;
using gmb::quota::WorldOptions;

struct Policy {
  const char* name;
  double low = 0;
  double high = 0;
  bool bring_back = false;
};

constexpr Policy kPolicies[] = {{"off"},
                                {"5 to 10 %", 0.05, 0.10},
                                {"10 to 20 %", 0.10, 0.20},
                                {"20 to 30 %", 0.20, 0.30},
                                {"10 to 20 %, and back", 0.10, 0.20, true}};

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// Of one class under one policy, seed by seed.
using Runs = std::vector<ReplayResult>;

Runs RunAll(TraceClass trace_class, const Policy& policy, int minutes,
            uint64_t seeds) {
  WorldOptions options;
  options.ahead.low = policy.low;
  options.ahead.high = policy.high;
  options.ahead.bring_back = policy.bring_back;
  Runs runs;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    runs.push_back(
        Replay(MakeReclaimTrace({.trace_class = trace_class,
                                 .seed = seed,
                                 .length = std::chrono::minutes(minutes)}),
               options));
    if (runs.back().problem.empty()) continue;
    std::fprintf(stderr, "seed %llu: %s\n",
                 static_cast<unsigned long long>(seed),
                 runs.back().problem.c_str());
    std::exit(1);
  }
  return runs;
}

template <typename Field>
double MedianOf(const Runs& runs, Field field) {
  std::vector<double> values;
  for (const ReplayResult& run : runs)
    values.push_back(static_cast<double>(run.*field));
  return Median(values);
}

template <typename Field>
double Sum(const Runs& runs, Field field) {
  double sum = 0;
  for (const ReplayResult& run : runs) sum += static_cast<double>(run.*field);
  return sum;
}

// The median over the seeds of what each has beside itself without the policy.
template <typename Field>
double Ratio(const Runs& runs, const Runs& off, Field field) {
  std::vector<double> ratios;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto before = static_cast<double>(off[i].*field);
    if (before > 0)
      ratios.push_back(static_cast<double>(runs[i].*field) / before);
  }
  return Median(ratios);
}

void Print(TraceClass trace_class, const Policy& policy, const Runs& runs,
           const Runs& off) {
  constexpr double kGiB = 1 << 30;
  const double taken = Sum(runs, &ReplayResult::taken_ahead);
  const double regretted = Sum(runs, &ReplayResult::regretted);
  std::printf(
      "| %s | %s | %.0f | %.0f | %.2f | %.0f / %.0f | %.2f | %.0f | %.2f | "
      "%.0f | %.2f | %.0f / %.0f | %.0f | %.1f %% |\n",
      TraceName(trace_class), policy.name, Sum(runs, &ReplayResult::denied),
      MedianOf(runs, &ReplayResult::wait_p99_ms),
      Ratio(runs, off, &ReplayResult::wait_p99_ms),
      MedianOf(runs, &ReplayResult::wake_p50_ms),
      MedianOf(runs, &ReplayResult::wake_p99_ms),
      Ratio(runs, off, &ReplayResult::wake_p99_ms),
      MedianOf(runs, &ReplayResult::guaranteed_p99_ms),
      Ratio(runs, off, &ReplayResult::guaranteed_p99_ms),
      MedianOf(runs, &ReplayResult::borrowing_p99_ms),
      Ratio(runs, off, &ReplayResult::borrowing_p99_ms),
      Sum(runs, &ReplayResult::copied_out_bytes) / kGiB,
      Sum(runs, &ReplayResult::copied_in_bytes) / kGiB, taken,
      taken > 0 ? 100 * regretted / taken : 0.0);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int minutes = argc > 1 ? std::atoi(argv[1]) : 20;
  const uint64_t seeds = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10;
  if (minutes < 1 || seeds < 1) return 2;
  std::printf(
      "| trace | free kept | denied | p99 ms | to off | wakes p50 / p99 ms | "
      "p99 to off | "
      "guaranteed p99 ms | to off | borrowing p99 ms | to off | out / in GiB | "
      "taken ahead | regret |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const TraceClass trace_class :
       {TraceClass::kBursty, TraceClass::kPeriodic, TraceClass::kDiurnal,
        TraceClass::kAdversarial}) {
    Runs off;
    for (const Policy& policy : kPolicies) {
      const Runs runs = RunAll(trace_class, policy, minutes, seeds);
      if (off.empty()) off = runs;
      Print(trace_class, policy, runs, off);
    }
  }
  return 0;
}
