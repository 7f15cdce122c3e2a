// How much slower a large broker is for everybody when much is asked of it that
// it cannot do at once.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "bench/broker/scale_fleet.h"
#include "bench/broker/scale_options.h"
#include "bench/broker/scale_stage.h"
#include "bench/broker/scale_turns.h"
#include "bench/quantile.h"
#include "client/cli/demo/temp_dir.h"

namespace gmb::bench {
namespace {

double Most(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

// One figure of every turn, calm and loaded.
struct Figure {
  const char* name;
  double (*of)(const Turn&);
};
constexpr Figure kFigures[] = {
    {"acquire p50",
     [](const Turn& turn) { return Quantile(turn.acquire_ms, 0.5); }},
    {"acquire p99",
     [](const Turn& turn) { return Quantile(turn.acquire_ms, 0.99); }},
    {"tenant set",
     [](const Turn& turn) { return Quantile(turn.tenant_set_ms, 0.5); }},
    {"tenant set, longest",
     [](const Turn& turn) { return Most(turn.tenant_set_ms); }},
    {"status", [](const Turn& turn) { return Quantile(turn.status_ms, 0.5); }},
    {"status, longest", [](const Turn& turn) { return Most(turn.status_ms); }},
    {"failed",
     [](const Turn& turn) { return static_cast<double>(turn.failed); }},
};

// The limit on open files, raised as far as the system lets it; the broker and
// the fleet inherit it.
uint64_t RaiseOpenFiles() {
  rlimit limit{};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

void PrintTurn(int pair, const char* kind, const Turn& turn) {
  std::printf("%d %-6s", pair, kind);
  for (const Figure& figure : kFigures)
    std::printf(" %s %.2f;", figure.name, figure.of(turn));
  std::printf(" %zu acquires\n", turn.acquire_ms.size());
  std::fflush(stdout);
}

// Medians of the turns, and of the ratios of each pair.
void PrintFigures(const std::vector<Turn>& calm,
                  const std::vector<Turn>& loaded) {
  std::printf("%-24s %10s %10s %8s\n", "ms, medians of the turns", "calm",
              "loaded", "ratio");
  for (const Figure& figure : kFigures) {
    std::vector<double> of_calm;
    std::vector<double> of_loaded;
    std::vector<double> ratios;
    for (size_t i = 0; i < calm.size(); ++i) {
      of_calm.push_back(figure.of(calm[i]));
      of_loaded.push_back(figure.of(loaded[i]));
      if (of_calm.back() > 0)
        ratios.push_back(of_loaded.back() / of_calm.back());
    }
    std::printf("%-24s %10.2f %10.2f %8.2f\n", figure.name,
                Quantile(of_calm, 0.5), Quantile(of_loaded, 0.5),
                Quantile(ratios, 0.5));
  }
}

// The stage is loaded.
void PrintKill(const ScaleOptions& options, ScaleStage* stage) {
  const AfterKill after = KillFleet(options, stage);
  std::printf(
      "SIGKILL of all: status %.1f ms, longest %.1f ms, of %zu (%d failed); ",
      Quantile(after.status_ms, 0.5), Most(after.status_ms),
      after.status_ms.size(), after.failed);
  if (after.back_s < 0) {
    std::printf("not all bytes came back\n");
  } else {
    std::printf("all bytes back after %.2f s\n", after.back_s);
  }
}

absl::Status Run(const ScaleOptions& options) {
  const absl::StatusOr<cli::TempDir> dir = cli::TempDir::Make();
  if (!dir.ok()) return dir.status();
  const uint64_t files = RaiseOpenFiles();
  const absl::Time start = absl::Now();
  absl::StatusOr<std::unique_ptr<ScaleStage>> stage =
      ScaleStage::Set(options, dir->path());
  if (!stage.ok()) return stage.status();
  const v1::GetStatusResponse& status = (*stage)->at_first();
  std::printf(
      "%llu tenants, %llu sessions in %u processes, %llu leases of 2 MiB, %llu "
      "open files allowed; set up in %.1f s\n",
      static_cast<unsigned long long>(status.tenants()),
      static_cast<unsigned long long>(status.sessions()), options.processes,
      static_cast<unsigned long long>(status.leases()),
      static_cast<unsigned long long>(files),
      absl::ToDoubleSeconds(absl::Now() - start));
  std::vector<Turn> calm;
  std::vector<Turn> loaded;
  double idle_calm = 0;
  for (int pair = 1; pair <= options.pairs; ++pair) {
    calm.push_back(MeasureTurn(options, **stage));
    PrintTurn(pair, "calm", calm.back());
    if (pair == options.pairs) idle_calm = IdleCpu(options, **stage);
    const absl::Time loading = absl::Now();
    if (absl::Status on = (*stage)->Load(); !on.ok()) return on;
    std::printf("%d load   on after %.2f s\n", pair,
                absl::ToDoubleSeconds(absl::Now() - loading));
    loaded.push_back(MeasureTurn(options, **stage));
    PrintTurn(pair, "loaded", loaded.back());
    if (pair == options.pairs) break;
    if (absl::Status off = (*stage)->Unload(); !off.ok()) return off;
  }
  PrintFigures(calm, loaded);
  std::printf("idle gmbd, %% of a core: calm %.2f, loaded %.2f\n", idle_calm,
              IdleCpu(options, **stage));
  std::fflush(stdout);
  PrintKill(options, stage->get());
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], kFleetFlag) == 0)
    return RunShip(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], kAskFlag) == 0) return Ask(argc, argv);
  const absl::StatusOr<ScaleOptions> options = ParseScaleOptions(argc, argv);
  if (!options.ok()) {
    std::fputs(std::string(options.status().message()).c_str(), stderr);
    return 2;
  }
  const absl::Status done = Run(*options);
  if (done.ok()) return 0;
  std::fprintf(stderr, "scale_bench: %s\n", done.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace gmb::bench

int main(int argc, char** argv) { return gmb::bench::Main(argc, argv); }
