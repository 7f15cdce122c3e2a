// The command line of scale_bench.
#include "bench/broker/scale_options.h"

#include <algorithm>

#include "absl/status/status.h"
#include "bench/flag_values.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/installed.h"

namespace gmb::bench {
namespace {

constexpr char kHelp[] =
    R"(usage: scale_bench [--gmbd PATH] [--gmb PATH] [--tenants 1000] [--sessions 1000]
                   [--leases 8000] [--processes 8] [--demands 100] [--pairs 5]
                   [--seconds 3] [--commands 10] [--idle-seconds 10] [--one-pool]

What a large broker of the host device costs each of its users. A fleet of
processes opens the sessions and holds the leases, 2 MiB each, as many as open
files allow. Calm and loaded turns alternate. Loaded means: limits are lowered
below what their tenants hold, a second pool drains and shrinks below what is
leased of it (not with --one-pool), and a request waits that cannot be served.

Columns: an acquire's p50 and p99 in ms, by a tenant within its guarantee;
the median and the longest of `gmb tenant set` and `gmb status` in ms, the start
of the command included; failed calls. Where there is no gmb beside this program,
it starts itself to ask the same. Then the CPU that an idle gmbd takes, in
percent of a core. Last, the fleet is killed with the load on: the longest
`gmb status` from then on, and when all its bytes are back.
)";

absl::Status FindPrograms(ScaleOptions* options) {
  if (options->gmbd.empty()) {
    absl::StatusOr<std::string> gmbd = cli::FindBroker();
    if (!gmbd.ok()) return gmbd.status();
    options->gmbd = *std::move(gmbd);
  }
  if (options->gmb.empty()) options->gmb = cli::FindInstalled("gmb", {"."});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ScaleOptions> ParseScaleOptions(int argc, char** argv) {
  ScaleOptions options;
  const FlagValues flags = {{"--gmbd", Path(&options.gmbd)},
                            {"--gmb", Path(&options.gmb)},
                            {"--tenants", Number(&options.tenants, 1U)},
                            {"--sessions", Number(&options.sessions, 1U)},
                            {"--leases", Number(&options.leases, 1U)},
                            {"--processes", Number(&options.processes, 1U)},
                            {"--demands", Number(&options.demands, 0U)},
                            {"--pairs", Number(&options.pairs, 1)},
                            {"--seconds", Seconds(&options.seconds)},
                            {"--commands", Number(&options.commands, 1)},
                            {"--idle-seconds", Seconds(&options.idle_seconds)}};
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--one-pool") {
      options.second_pool = false;
      continue;
    }
    const auto known = flags.find(flag);
    if (known == flags.end() || ++i == argc || !known->second(argv[i]))
      return absl::InvalidArgumentError(kHelp);
  }
  options.processes = std::min(options.processes, options.sessions);
  if (absl::Status found = FindPrograms(&options); !found.ok()) return found;
  return options;
}

}  // namespace gmb::bench
