// Whether anything is lost, or grows, while clients, their broker and its keeper
// are killed for a long time.
#include <cstdio>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/load/endurance_run.h"
#include "bench/load/worker.h"
#include "client/cli/demo/temp_dir.h"
#include "client/cli/interrupt.h"

namespace gmb::bench {
namespace {

constexpr char kEnduranceHelp[] =
    "usage: endurance [FLAG VALUE]...\n"
    "Clients keep a broker busy, as in load_bench, and verify every byte.\n"
    "They, the broker and its keeper are killed (SIGKILL) at random instants,\n"
    "and followed by others at once. Broker and keeper are never dead\n"
    "together, which loses everything by design: the broker is left alone "
    "from\n"
    "the keeper's death until its log says keeper_found, and the keeper until\n"
    "the next broker answers. One broker of four is killed once more while it\n"
    "takes over.\n"
    "  --for TIME         [60m]\n"
    "  --kill-broker TIME on average; 0: never [20s]\n"
    "  --kill-keeper TIME likewise [90s]\n"
    "  --sample TIME      between two looks at memory, fds, threads, journal\n"
    "                     and keeper [1m, or a thirtieth of it all]\n";
constexpr char kEnduranceHelpEnd[] =
    "\nIn a run of 5 minutes and more nothing may grow: after the first tenth "
    "of\n"
    "the samples, the median of the last third may be above that of the first\n"
    "third by what the table allows: 10 % or some MiB, 8 fds, 4 threads\n"
    "(keeper: 1), 16 records.\n"
    "At the end all clients verify and leave. Then the pool must be free, the\n"
    "host pool and the keeper have nothing of clients, and no more fds be "
    "open\n"
    "than before the first came. SIGINT ends it early, and well. Exits with 1\n"
    "where anything was lost, grew, was stuck or was left; then the folder\n"
    "with all logs is kept.\n";

absl::StatusOr<EnduranceOptions> ParseEndurance(int argc, char** argv) {
  EnduranceOptions options;
  FlagValues flags = LoadFlags(&options.load);
  flags.emplace("--for", Time(&options.length));
  flags.emplace("--kill-broker", Time(&options.kill_broker));
  flags.emplace("--kill-keeper", Time(&options.kill_keeper));
  flags.emplace("--sample", Time(&options.sample_every));
  for (int i = 1; i < argc; i += 2) {
    const auto flag = flags.find(argv[i]);
    if (flag == flags.end() || i + 1 == argc || !flag->second(argv[i + 1])) {
      return absl::InvalidArgumentError(
          absl::StrCat(kEnduranceHelp, kLoadFlags, kEnduranceHelpEnd));
    }
  }
  GMB_RETURN_IF_ERROR(Complete(&options.load));
  return options;
}

absl::StatusOr<bool> Endure(const EnduranceOptions& options) {
  const cli::Interrupt interrupt;
  std::printf("--seed %llu: %u tenants, %u sessions in %u processes, %u MiB\n",
              static_cast<unsigned long long>(options.load.seed),
              options.load.tenants, options.load.sessions,
              options.load.processes, options.load.pool_mib);
  GMB_ASSIGN_OR_RETURN(cli::TempDir dir, cli::TempDir::Make());
  GMB_ASSIGN_OR_RETURN(SharedTally tally, SharedTally::Make());
  bool well = false;
  absl::Status ran;
  {
    EnduranceRun run(options, &tally, interrupt.token());
    ran = run.Run(dir.path());
    well = run.Report() && ran.ok();
  }
  if (!ran.ok()) std::printf("broke off: %s\n", ran.ToString().c_str());
  if (!well) {
    dir.Keep();
    std::printf("logs: %s\n", dir.path().c_str());
  }
  std::puts(well ? "endurance: nothing lost, nothing left"
                 : "endurance: FAILED");
  return well;
}

int EnduranceMain(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], kWorkerFlag) == 0)
    return RunWorker(argc, argv);
  const absl::StatusOr<EnduranceOptions> options = ParseEndurance(argc, argv);
  if (!options.ok()) {
    std::fputs(std::string(options.status().message()).c_str(), stderr);
    return 2;
  }
  const absl::StatusOr<bool> well = Endure(*options);
  if (well.ok()) return *well ? 0 : 1;
  std::fprintf(stderr, "endurance: %s\n", well.status().ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace gmb::bench

int main(int argc, char** argv) {
  return gmb::bench::EnduranceMain(argc, argv);
}
