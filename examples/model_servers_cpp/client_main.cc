// Drives model servers, checks every answer against sums of its own, and says
// what came of it:
//   model_client --server writer=8001 --server search=8002 ... --share-bytes N
// Ends with 0 when every check held.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "caller.h"
#include "load.h"
#include "model.h"
#include "reference.h"

namespace model_servers {
namespace {

constexpr uint64_t kMostBurst = 256;  // which the reference computes as well

struct Options {
  std::vector<std::string> servers;
  uint64_t unit_bytes = uint64_t{256} << 10;
  uint64_t share_bytes = 0;
  double together_seconds = 5;
  LoadOptions load;
};

// "writer=8001"
absl::StatusOr<Target> TargetFrom(const std::string& text,
                                  const Options& options) {
  const std::vector<std::string> parts = absl::StrSplit(text, '=');
  Target target;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &target.port) ||
      target.port < 1 || target.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("a server is MODEL=PORT, not \"", text, "\""));
  }
  target.name = parts[0];
  const auto model = Model::Find(target.name, options.unit_bytes);
  if (!model.ok()) return model.status();
  auto sums = ExpectedSums(*model, {1, options.load.burst});
  if (!sums.ok()) return sums.status();
  target.expected_sums = *std::move(sums);
  return target;
}

// All at the same time: it is much to compute.
absl::StatusOr<std::vector<Target>> Prepare(const Options& options) {
  std::vector<absl::StatusOr<Target>> found(options.servers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back(
        [&, i] { found[i] = TargetFrom(options.servers[i], options); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Target> targets;
  for (absl::StatusOr<Target>& target : found) {
    if (!target.ok()) return target.status();
    targets.push_back(*std::move(target));
  }
  return targets;
}

double Quantile(std::vector<absl::Duration> took, double part) {
  if (took.empty()) return 0;
  const auto at =
      static_cast<size_t>(part * static_cast<double>(took.size() - 1));
  std::nth_element(took.begin(), took.begin() + static_cast<ptrdiff_t>(at),
                   took.end());
  return absl::ToDoubleMilliseconds(took[at]);
}

std::string Mib(uint64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

class Report {
 public:
  // Prints a phase's table. Outside of the crowd nobody is to be refused.
  void Phase(const std::string& title, const std::vector<Target>& targets,
             const Tallies& tallies, bool refusals_allowed) {
    std::printf("\n%s\n  %-11s %8s %7s %7s %6s %12s %8s %8s\n", title.c_str(),
                "model", "requests", "served", "refused", "failed",
                "met evicted", "p50 ms", "p99 ms");
    total_.resize(targets.size());
    for (size_t i = 0; i < targets.size(); ++i) {
      const Tally& tally = tallies[i];
      std::printf("  %-11s %8lu %7lu %7lu %6lu %12lu %8.1f %8.1f\n",
                  targets[i].name.c_str(), tally.requests, tally.served,
                  tally.refused, tally.failed, tally.met_evicted,
                  Quantile(tally.took, 0.5), Quantile(tally.took, 0.99));
      if (!tally.last_error.empty()) {
        std::printf("    last error: %s\n", tally.last_error.c_str());
      }
      if (!refusals_allowed) refused_alone_ += tally.refused;
      total_[i].Add(tally);
    }
    std::fflush(stdout);
  }

  // Prints how much the servers held, beside their share, and the checks.
  bool Conclude(const std::vector<Target>& targets, uint64_t share_bytes) {
    std::printf("\n  %-11s %12s %14s %12s\n", "model", "share", "peak held",
                "holds now");
    bool above = true;
    Tally all;
    for (size_t i = 0; i < targets.size(); ++i) {
      all.Add(total_[i]);
      const auto stats = Caller(targets[i].port).Stats();
      if (!stats.ok()) {
        Check(false, absl::StrCat("statistics of ", targets[i].name, ": ",
                                  std::string(stats.status().message())));
        continue;
      }
      above = above && stats->peak_held_bytes > share_bytes;
      std::printf("  %-11s %12s %14s %12s\n", targets[i].name.c_str(),
                  Mib(share_bytes).c_str(), Mib(stats->peak_held_bytes).c_str(),
                  Mib(stats->held_bytes).c_str());
    }
    std::printf("\n");
    Check(all.served > 0 && all.wrong == 0,
          absl::StrCat(all.served, " answers, all with the right sum"));
    Check(all.failed == 0, "no request failed in another way than refused");
    Check(refused_alone_ == 0, "nobody was refused while the others were idle");
    Check(above, "every model held more than its share");
    Check(all.met_evicted > 0,
          absl::StrCat(all.met_evicted, " requests met an evicted model"));
    return good_;
  }

 private:
  void Check(bool holds, const std::string& what) {
    std::printf("%s  %s\n", holds ? "PASS" : "FAIL", what.c_str());
    good_ = good_ && holds;
  }

  Tallies total_;
  uint64_t refused_alone_ = 0;
  bool good_ = true;
};

int Run(const Options& options) {
  const auto targets = Prepare(options);
  if (!targets.ok()) {
    std::fprintf(stderr, "model_client: %s\n",
                 std::string(targets.status().message()).c_str());
    return 2;
  }
  const std::string burst = absl::StrCat("batches of ", options.load.burst);
  Report report;
  report.Phase("Single requests, one model after the other", *targets,
               Singles(*targets, options.load), false);
  report.Phase(absl::StrCat("In turn: ", burst, ", the others idle"), *targets,
               BurstsInTurn(*targets, options.load), false);
  report.Phase(
      absl::StrFormat("All at once for %.1f s: single ones and %s, "
                      "seed %d",
                      options.together_seconds, burst, options.load.seed),
      *targets, Together(*targets, options.load), true);
  report.Phase("Afterwards, in turn again", *targets,
               BurstsInTurn(*targets, options.load), false);
  return report.Conclude(*targets, options.share_bytes) ? 0 : 1;
}

}  // namespace
}  // namespace model_servers

int main(int argc, char** argv) try {
  model_servers::Options options;
  CLI::App app("Drives model servers and checks what they answer.");
  app.add_option("--server", options.servers, "MODEL=PORT; repeat it")
      ->required();
  app.add_option("--share-bytes", options.share_bytes,
                 "What each tenant is guaranteed")
      ->required();
  app.add_option("--unit-bytes", options.unit_bytes,
                 "As the servers' [256 KiB]");
  app.add_option("--burst", options.load.burst, "Rows of a large batch [12]")
      ->check(CLI::Range(uint64_t{1}, model_servers::kMostBurst));
  app.add_option("--rounds", options.load.rounds, "Of requests in turn [3]");
  app.add_option("--together", options.together_seconds,
                 "Seconds of requests to all models at once [5]")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--seed", options.load.seed, "Of those requests [1]");
  CLI11_PARSE(app, argc, argv);
  options.load.together = absl::Seconds(options.together_seconds);
  return model_servers::Run(options);
} catch (const std::exception& error) {  // of the libraries
  std::fprintf(stderr, "model_client: %s\n", error.what());
  return 2;
}
