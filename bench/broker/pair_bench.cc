// How many leases a broker grants and takes back a second, with many sessions
// at once: brokers in turns, and gRPC's own empty stream beside them.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/broker/echo_stream.h"
#include "bench/broker/lease_pairs.h"
#include "bench/cpu_seconds.h"
#include "bench/quantile.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/demo/keeper_process.h"
#include "client/cli/demo/temp_dir.h"

namespace gmb::bench {
namespace {

constexpr char kHelp[] =
    "usage: pair_bench [--gmbd PATH]... [--kept PATH]... [--sessions N] "
    "[--rounds N]\n"
    "                  [--seconds S] [--end release|destroy]\n"
    "Pairs of acquire and release a second on the host device, with N sessions "
    "at once [100],\n"
    "for S seconds [3] a round [9]. Several gmbd take turns, those of --kept "
    "with a keeper, and\n"
    "every one is compared with the first of the same round: median and worst "
    "of the ratios.\n"
    "Likewise the CPU time of a pair in broker, keeper and clients together, "
    "where more is worse; a\n"
    "busy machine disturbs it less. Beside them, round trips a second of as "
    "many empty bidirectional\n"
    "gRPC streams, and their CPU time. Without --gmbd and --kept, the gmbd "
    "beside this program.\n"
    "A lease ends by Release() [release], which waits for the answer, or by "
    "its destructor.\n";

struct Contender {
  std::string gmbd;
  bool kept = false;  // with a keeper
};

struct Options {
  std::vector<Contender> brokers;
  uint32_t sessions = 100;
  int rounds = 9;
  double seconds = 3;
  Ending ending = Ending::kRelease;
};

// INVALID_ARGUMENT: the command line is wrong, or asks for help; the message is
// the help.
absl::StatusOr<Options> Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    bool good = !value.empty();
    if (flag == "--gmbd" || flag == "--kept") {
      options.brokers.push_back({value, flag == "--kept"});
    } else if (flag == "--sessions") {
      good = absl::SimpleAtoi(value, &options.sessions) && options.sessions > 0;
    } else if (flag == "--rounds") {
      good = absl::SimpleAtoi(value, &options.rounds) && options.rounds > 0;
    } else if (flag == "--seconds") {
      good = absl::SimpleAtod(value, &options.seconds) && options.seconds > 0;
    } else if (flag == "--end") {
      good = value == "release" || value == "destroy";
      if (value == "destroy") options.ending = Ending::kDestroy;
    } else {
      good = false;
    }
    if (!good) return absl::InvalidArgumentError(kHelp);
  }
  if (options.brokers.empty()) {
    absl::StatusOr<std::string> found = cli::FindBroker();
    if (!found.ok()) return found.status();
    options.brokers.push_back({*std::move(found)});
  }
  return options;
}

struct Figures {
  double pairs_a_second = 0;
  double cpu_us = 0;  // of a pair
};

absl::StatusOr<Figures> Measure(const Options& options,
                                const Contender& contender,
                                const std::string& dir) {
  std::filesystem::create_directory(dir);
  std::vector<std::string> flags = {"--device", "host:2GiB"};
  std::optional<cli::KeeperProcess> keeper;
  if (contender.kept) {
    absl::StatusOr<cli::KeeperProcess> started = cli::KeeperProcess::Start(dir);
    if (!started.ok()) return started.status();
    keeper.emplace(*std::move(started));
    flags.insert(flags.end(), {"--keeper", keeper->socket()});
  }
  auto broker = cli::BrokerProcess::Start(
      {.program = contender.gmbd,
       .device_flags = flags,
       .config = absl::StrCat("tenants:\n  - {name: a, limit: 100%, "
                              "max_sessions: ",
                              options.sessions, "}\n"),
       .dir = dir});
  if (!broker.ok()) return broker.status();
  const auto used_so_far = [&] {
    const double kept =
        keeper.has_value() ? CpuSeconds(absl::StrCat(keeper->pid())) : 0;
    return kept + CpuSeconds(absl::StrCat((*broker)->pid())) +
           CpuSeconds("self");
  };
  const double before = used_so_far();
  const absl::StatusOr<double> rate =
      LeasePairsASecond((*broker)->socket_dir() + "/tenants/a",
                        options.sessions, options.seconds, options.ending);
  if (!rate.ok()) return rate.status();
  const double used = used_so_far() - before;
  return Figures{*rate, used * 1e6 / (*rate * options.seconds)};
}

// Medians, and ratios to `beside`, element by element.
void Report(const std::string& name, const std::vector<double>& values,
            const std::vector<double>& beside, bool more_is_better) {
  std::vector<double> ratios;
  for (size_t i = 0; i < values.size(); ++i)
    ratios.push_back(values[i] / beside[i]);
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  std::printf("%-28s %8.0f   %6.3f %6.3f\n", name.c_str(),
              Quantile(values, 0.5), Quantile(ratios, 0.5),
              more_is_better ? *least : *most);
}

absl::Status Run(const Options& options) {
  const absl::StatusOr<cli::TempDir> dir = cli::TempDir::Make();
  if (!dir.ok()) return dir.status();
  const size_t brokers = options.brokers.size();
  std::vector<std::vector<double>> pairs(brokers);
  std::vector<std::vector<double>> cpu(brokers);
  std::vector<double> echoes;
  std::vector<double> echo_cpu;
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t turn = 0; turn < brokers; ++turn) {
      // To and fro, so that none is always the first of a round.
      const size_t i = round % 2 == 0 ? turn : brokers - 1 - turn;
      const absl::StatusOr<Figures> figures =
          Measure(options, options.brokers[i],
                  absl::StrCat(dir->path(), "/", round, "-", i));
      if (!figures.ok()) return figures.status();
      pairs[i].push_back(figures->pairs_a_second);
      cpu[i].push_back(figures->cpu_us);
    }
    const absl::StatusOr<Echoes> echo = MeasureEchoes(
        dir->path() + "/echo.sock", options.sessions, options.seconds);
    if (!echo.ok()) return echo.status();
    echoes.push_back(echo->a_second);
    echo_cpu.push_back(echo->cpu_us);
    std::printf("round %d:", round + 1);
    for (size_t i = 0; i < brokers; ++i)
      std::printf(" %6.0f (%4.0f us)", pairs[i].back(), cpu[i].back());
    std::printf("   empty streams %8.0f (%4.0f us)\n", echoes.back(),
                echo_cpu.back());
    std::fflush(stdout);
  }
  std::printf("%u sessions, %d rounds\n%-28s %8s   %6s %6s\n", options.sessions,
              options.rounds, "", "median", "ratio", "worst");
  for (size_t i = 0; i < brokers; ++i) {
    const std::string broker = absl::StrCat(
        ", broker ", i + 1, options.brokers[i].kept ? " (kept)" : "");
    Report("pairs a second" + broker, pairs[i], pairs[0], true);
    Report("CPU us a pair" + broker, cpu[i], cpu[0], false);
    Report("  pairs / empty streams", pairs[i], echoes, true);
    Report("  CPU / empty streams", cpu[i], echo_cpu, false);
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == kServeFlag) ServeEchoes(argv[2]);
  const absl::StatusOr<Options> options = Parse(argc, argv);
  if (!options.ok()) {
    std::fputs(std::string(options.status().message()).c_str(), stderr);
    return 2;
  }
  const absl::Status done = Run(*options);
  if (done.ok()) return 0;
  std::fprintf(stderr, "pair_bench: %s\n", std::string(done.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace gmb::bench

int main(int argc, char** argv) { return gmb::bench::Main(argc, argv); }
