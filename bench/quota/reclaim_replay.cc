// Shows what each feature of reclaim does to traces of four classes, in
// simulated time:
//
//     reclaim_replay [minutes] [seeds]
//
// The rows differ by one feature each; docs/reclaim-study.md has the table.
#include "tests/quota/reclaim_replay.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using gmb::quota::MakeReclaimTrace;
using gmb::quota::Replay;
using gmb::quota::ReplayResult;
using gmb::quota::TraceClass;
using gmb::quota::WorldOptions;

struct Row {
  const char* name;
  WorldOptions options;
};

std::vector<Row> Rows() {
  WorldOptions evict;
  WorldOptions none = evict;
  none.reclaim = false;
  WorldOptions no_pause = evict;
  no_pause.planner.pause = false;
  WorldOptions lend = evict;
  lend.planner.lend_parked_guarantees = true;
  WorldOptions back = evict;
  back.back_ahead = true;
  back.backing.bytes_per_second = 2'000'000'000;
  WorldOptions forecast = back;
  forecast.use_forecast = true;
  return {{"no reclaim", none},        {"evict, pause", evict},
          {"without pause", no_pause}, {"+ parked guarantees lent", lend},
          {"+ backing ahead", back},   {"+ backing and forecast", forecast}};
}

ReplayResult Mean(TraceClass trace_class, const WorldOptions& options,
                  int minutes, uint64_t seeds) {
  ReplayResult sum;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const ReplayResult one =
        Replay(MakeReclaimTrace({.trace_class = trace_class,
                                 .seed = seed,
                                 .length = std::chrono::minutes(minutes)}),
               options);
    if (!one.problem.empty()) {
      std::fprintf(stderr, "seed %lu: %s\n", static_cast<unsigned long>(seed),
                   one.problem.c_str());
      std::exit(1);
    }
    const auto n = static_cast<double>(seeds);
    sum.uses += one.uses;
    sum.denied += one.denied;
    sum.wait_p50_ms += one.wait_p50_ms / n;
    sum.wait_p99_ms += one.wait_p99_ms / n;
    sum.guaranteed_p99_ms += one.guaranteed_p99_ms / n;
    sum.copied_out_bytes += one.copied_out_bytes;
    sum.copied_in_bytes += one.copied_in_bytes;
    sum.evictions += one.evictions;
    sum.pauses += one.pauses;
    sum.resident += one.resident / n;
    sum.active += one.active / n;
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const int minutes = argc > 1 ? std::atoi(argv[1]) : 20;
  const uint64_t seeds = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 3;
  if (minutes < 1 || seeds < 1) return 2;
  std::printf(
      "| trace | features | uses | denied | wait p50 ms | p99 ms | p99 ms, "
      "guaranteed | copied out GiB | in GiB | evictions | pauses | resident | "
      "in use |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  constexpr double kGiB = 1 << 30;
  for (const TraceClass trace_class :
       {TraceClass::kBursty, TraceClass::kPeriodic, TraceClass::kDiurnal,
        TraceClass::kAdversarial}) {
    for (const Row& row : Rows()) {
      const ReplayResult r = Mean(trace_class, row.options, minutes, seeds);
      std::printf(
          "| %s | %s | %lu | %lu | %.1f | %.0f | %.0f | %.0f | %.0f | %lu | "
          "%lu | %.0f %% | %.0f %% |\n",
          TraceName(trace_class), row.name, static_cast<unsigned long>(r.uses),
          static_cast<unsigned long>(r.denied), r.wait_p50_ms, r.wait_p99_ms,
          r.guaranteed_p99_ms, static_cast<double>(r.copied_out_bytes) / kGiB,
          static_cast<double>(r.copied_in_bytes) / kGiB,
          static_cast<unsigned long>(r.evictions),
          static_cast<unsigned long>(r.pauses), 100 * r.resident,
          100 * r.active);
      std::fflush(stdout);
    }
  }
  return 0;
}
