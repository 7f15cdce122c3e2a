// Measures what many clients see of a broker that they all keep busy, beside
// gRPC's own empty stream in the same run.
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "bench/broker/echo_stream.h"
#include "bench/cpu_seconds.h"
#include "bench/load/crew.h"
#include "bench/load/load_options.h"
#include "bench/load/load_stage.h"
#include "bench/load/op_figures.h"
#include "bench/load/random_times.h"
#include "bench/load/worker.h"
#include "bench/quantile.h"
#include "client/cli/demo/temp_dir.h"

namespace gmb::bench {
namespace {

constexpr char kHelp[] =
    "usage: load_bench [FLAG VALUE]... [--json]\n"
    "Processes of several tenants share a pool that is too small for them.\n"
    "Their sessions acquire, write, verify, release, work in scopes and rest\n"
    "at random, and are killed; what rests is evicted for others, and comes\n"
    "back. Turns of that and of as many empty gRPC streams\n"
    "alternate.\n"
    "  --seconds S        a turn of either [3]\n"
    "  --turns N          of each [5]\n";
constexpr char kHelpEnd[] =
    "\nCalls are acquires, releases and wakes, which the broker answers; a\n"
    "scope asks nobody. A wake is a scope whose memory was away; kill is\n"
    "SIGKILL of a process until the broker has none of its sessions. Times "
    "are\n"
    "the client's: an acquire has its wait for memory, up to 300 ms. Writing\n"
    "and verifying is not in the times, and takes the same processors. Exits\n"
    "with 1 where a byte was wrong or the books did not come back to "
    "nothing.\n";

struct Options {
  LoadOptions load;
  double seconds = 3;
  uint32_t turns = 5;
  bool json = false;
};

// INVALID_ARGUMENT: the command line is wrong, or asks for help; the message is
// the help.
absl::StatusOr<Options> Parse(int argc, char** argv) {
  Options options;
  FlagValues flags = LoadFlags(&options.load);
  flags.emplace("--seconds", Seconds(&options.seconds));
  flags.emplace("--turns", Number(&options.turns, 1U));
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) {
      options.json = true;
      continue;
    }
    const auto flag = flags.find(argv[i]);
    if (flag == flags.end() || ++i == argc || !flag->second(argv[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat(kHelp, kLoadFlags, kHelpEnd));
    }
  }
  GMB_RETURN_IF_ERROR(Complete(&options.load));
  return options;
}

struct Figures {
  std::vector<double> calls;   // a second, a turn
  std::vector<double> echoes;  // likewise
  std::vector<double> ratios;  // of both
  std::vector<double> cpu_us;  // of the broker, a call
  std::vector<std::string> faults;
};

absl::Status LoadTurn(const Options& options, const LoadStage& stage,
                      RandomTimes* kills, SharedTally* tally,
                      Figures* figures) {
  absl::StatusOr<Crew> crew = stage.StartCrew(tally);
  GMB_RETURN_IF_ERROR(crew.status());
  const std::string broker = absl::StrCat(stage.broker().pid());
  const double cpu_before = CpuSeconds(broker);
  const uint64_t calls_before = (*tally)->Calls();
  const absl::Time start = absl::Now();
  while (absl::Now() < start + absl::Seconds(options.seconds)) {
    absl::SleepFor(absl::Milliseconds(10));
    if (!kills->Due()) continue;
    GMB_RETURN_IF_ERROR(
        stage.KillClient(kills->Roll(crew->size()), &*crew, &**tally));
    kills->Advance();
  }
  const auto calls = static_cast<double>((*tally)->Calls() - calls_before);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  figures->calls.push_back(calls / seconds);
  figures->cpu_us.push_back((CpuSeconds(broker) - cpu_before) * 1e6 /
                            std::max(calls, 1.0));
  for (std::string& fault : crew->Faults())
    figures->faults.push_back(std::move(fault));
  for (std::string& fault : crew->Finish())
    figures->faults.push_back(std::move(fault));
  if (const std::string left = stage.WhatIsLeft(); !left.empty())
    figures->faults.push_back(absl::StrCat("not back:", left));
  return absl::OkStatus();
}

double EmptyRoundTripMs(const Options& options, const Figures& figures) {
  return 1000 * options.load.sessions / Quantile(figures.echoes, 0.5);
}

void PrintAll(const Options& options, Tally* tally, const Figures& figures) {
  const double seconds = options.seconds * options.turns;
  PrintOps(tally, seconds, EmptyRoundTripMs(options, figures));
  std::printf(
      "medians of %u turns: calls a second %.0f; empty streams %.0f, a round "
      "trip %.3f ms; calls / empty streams %.3f (worst %.3f)\n"
      "broker's CPU a call %.0f us\n"
      "refused: %s\nverified %.1f GiB, %llu words lost, %llu of others; %zu "
      "faults\n",
      options.turns, Quantile(figures.calls, 0.5),
      Quantile(figures.echoes, 0.5), EmptyRoundTripMs(options, figures),
      Quantile(figures.ratios, 0.5), Quantile(figures.ratios, 0),
      Quantile(figures.cpu_us, 0.5), tally->Refusals().c_str(),
      static_cast<double>(tally->verified_bytes) / (uint64_t{1} << 30),
      static_cast<unsigned long long>(tally->lost_words),
      static_cast<unsigned long long>(tally->foreign_words),
      figures.faults.size());
}

void PrintJson(const Options& options, Tally* tally, const Figures& figures) {
  const double empty_ms = EmptyRoundTripMs(options, figures);
  std::printf(
      "{\"seed\": %llu, \"tenants\": %u, \"sessions\": %u, \"processes\": %u,\n"
      "  \"calls_a_second\": %.1f, \"empty_streams_a_second\": %.1f, "
      "\"ratio\": %.4f, \"worst_ratio\": %.4f,\n"
      "  \"empty_round_trip_ms\": %.4f, \"broker_cpu_us_a_call\": %.1f,\n"
      "  \"lost_words\": %llu, \"foreign_words\": %llu, \"faults\": %zu,\n"
      "  \"ops\": [\n%s]}\n",
      static_cast<unsigned long long>(options.load.seed), options.load.tenants,
      options.load.sessions, options.load.processes,
      Quantile(figures.calls, 0.5), Quantile(figures.echoes, 0.5),
      Quantile(figures.ratios, 0.5), Quantile(figures.ratios, 0), empty_ms,
      Quantile(figures.cpu_us, 0.5),
      static_cast<unsigned long long>(tally->lost_words),
      static_cast<unsigned long long>(tally->foreign_words),
      figures.faults.size(),
      OpsJson(tally, options.seconds * options.turns, empty_ms).c_str());
}

absl::StatusOr<Figures> Measure(const Options& options, SharedTally* tally) {
  absl::StatusOr<cli::TempDir> dir = cli::TempDir::Make();
  GMB_RETURN_IF_ERROR(dir.status());
  absl::StatusOr<std::unique_ptr<LoadStage>> stage =
      LoadStage::Set(options.load, dir->path());
  GMB_RETURN_IF_ERROR(stage.status());
  RandomTimes kills(options.load.kill_client, options.load.seed);
  Figures figures;
  for (uint32_t turn = 0; turn < options.turns; ++turn) {
    GMB_RETURN_IF_ERROR(LoadTurn(options, **stage, &kills, tally, &figures));
    GMB_ASSIGN_OR_RETURN(const Echoes echoes,
                         MeasureEchoes(dir->path() + "/echo.sock",
                                       options.load.sessions, options.seconds));
    figures.echoes.push_back(echoes.a_second);
    figures.ratios.push_back(figures.calls.back() / echoes.a_second);
    if (options.json) continue;
    std::printf("turn %u: %8.0f calls a second, empty streams %8.0f\n",
                turn + 1, figures.calls.back(), echoes.a_second);
    std::fflush(stdout);
  }
  GMB_RETURN_IF_ERROR((*stage)->Stop());
  return figures;
}

// Whether all was as it should be.
absl::StatusOr<bool> Run(const Options& options) {
  if (!options.json) {
    std::printf(
        "--seed %llu: %u tenants, %u sessions in %u processes, %u MiB\n",
        static_cast<unsigned long long>(options.load.seed),
        options.load.tenants, options.load.sessions, options.load.processes,
        options.load.pool_mib);
    std::fflush(stdout);
  }
  GMB_ASSIGN_OR_RETURN(SharedTally tally, SharedTally::Make());
  GMB_ASSIGN_OR_RETURN(const Figures figures, Measure(options, &tally));
  (options.json ? PrintJson : PrintAll)(options, &*tally, figures);
  for (const std::string& fault : figures.faults)
    std::fprintf(stderr, "load_bench: %s\n", fault.c_str());
  return figures.faults.empty();
}

int Main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], kServeFlag) == 0) ServeEchoes(argv[2]);
  if (argc > 1 && std::strcmp(argv[1], kWorkerFlag) == 0)
    return RunWorker(argc, argv);
  const absl::StatusOr<Options> options = Parse(argc, argv);
  if (!options.ok()) {
    std::fputs(std::string(options.status().message()).c_str(), stderr);
    return 2;
  }
  const absl::StatusOr<bool> well = Run(*options);
  if (well.ok()) return *well ? 0 : 1;
  std::fprintf(stderr, "load_bench: %s\n", well.status().ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace gmb::bench

int main(int argc, char** argv) { return gmb::bench::Main(argc, argv); }
