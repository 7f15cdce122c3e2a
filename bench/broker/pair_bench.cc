// How many leases a broker grants and takes back a second, with many sessions
// at once: brokers in turns, and gRPC's own empty stream beside them.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/broker/echo_stream.h"
#include "bench/broker/lease_pairs.h"
#include "bench/quantile.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/demo/temp_dir.h"

namespace gmb::bench {
namespace {

constexpr char kHelp[] =
    "usage: pair_bench [--gmbd PATH]... [--sessions N] [--rounds N] "
    "[--seconds S]\n"
    "Pairs of acquire and release a second on the host device, with N sessions "
    "at once [100],\n"
    "for S seconds [3] a round [9]. Several gmbd take turns, and every one is "
    "compared with the\n"
    "first of the same round: median and worst of the ratios. Beside them, "
    "round trips a second\n"
    "of as many empty bidirectional gRPC streams. Without --gmbd, the one "
    "beside this program.\n";

struct Options {
  std::vector<std::string> brokers;
  uint32_t sessions = 100;
  int rounds = 9;
  double seconds = 3;
};

// INVALID_ARGUMENT: the command line is wrong, or asks for help; the message is
// the help.
absl::StatusOr<Options> Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    bool good = !value.empty();
    if (flag == "--gmbd") {
      options.brokers.push_back(value);
    } else if (flag == "--sessions") {
      good = absl::SimpleAtoi(value, &options.sessions) && options.sessions > 0;
    } else if (flag == "--rounds") {
      good = absl::SimpleAtoi(value, &options.rounds) && options.rounds > 0;
    } else if (flag == "--seconds") {
      good = absl::SimpleAtod(value, &options.seconds) && options.seconds > 0;
    } else {
      good = false;
    }
    if (!good) return absl::InvalidArgumentError(kHelp);
  }
  if (options.brokers.empty()) {
    absl::StatusOr<std::string> found = cli::FindBroker();
    if (!found.ok()) return found.status();
    options.brokers.push_back(*std::move(found));
  }
  return options;
}

absl::StatusOr<double> Measure(const Options& options,
                               const std::string& program,
                               const std::string& dir) {
  std::filesystem::create_directory(dir);
  auto broker = cli::BrokerProcess::Start(
      {.program = program,
       .device_flags = {"--device", "host:2GiB"},
       .config = absl::StrCat("tenants:\n  - {name: a, limit: 100%, "
                              "max_sessions: ",
                              options.sessions, "}\n"),
       .dir = dir});
  if (!broker.ok()) return broker.status();
  return LeasePairsASecond((*broker)->socket_dir() + "/tenants/a",
                           options.sessions, options.seconds);
}

absl::Status Run(const Options& options) {
  const absl::StatusOr<cli::TempDir> dir = cli::TempDir::Make();
  if (!dir.ok()) return dir.status();
  std::vector<std::vector<double>> pairs(options.brokers.size());
  std::vector<double> echoes;
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < options.brokers.size(); ++i) {
      const absl::StatusOr<double> rate =
          Measure(options, options.brokers[i],
                  absl::StrCat(dir->path(), "/", round, "-", i));
      if (!rate.ok()) return rate.status();
      pairs[i].push_back(*rate);
    }
    const absl::StatusOr<double> echo = EchoesASecond(
        dir->path() + "/echo.sock", options.sessions, options.seconds);
    if (!echo.ok()) return echo.status();
    echoes.push_back(*echo);
    std::printf("round %d:", round + 1);
    for (const auto& broker : pairs) std::printf(" %8.0f", broker.back());
    std::printf("   empty streams %8.0f\n", echoes.back());
    std::fflush(stdout);
  }
  const auto report = [&](const std::string& name,
                          const std::vector<double>& rates,
                          const std::vector<double>& beside) {
    std::vector<double> ratios;
    for (size_t i = 0; i < rates.size(); ++i)
      ratios.push_back(rates[i] / beside[i]);
    std::printf("%-24s %10.0f   %6.3f %6.3f\n", name.c_str(),
                Quantile(rates, 0.5), Quantile(ratios, 0.5),
                *std::min_element(ratios.begin(), ratios.end()));
  };
  std::printf("%u sessions, %d rounds\n%-24s %10s   %6s %6s\n",
              options.sessions, options.rounds, "", "a second", "median",
              "worst");
  for (size_t i = 0; i < pairs.size(); ++i) {
    report(absl::StrCat("pairs, broker ", i + 1), pairs[i], pairs[0]);
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    report(absl::StrCat("  ", i + 1, " / empty streams"), pairs[i], echoes);
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
