// The flags that all programs of the load have.
#include "bench/load/load_options.h"

#include <algorithm>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "bench/load/tally.h"
#include "client/cli/demo/broker_process.h"

namespace gmb::bench {
namespace {

// A word's first byte is its tenant's.
constexpr uint32_t kMostLoadTenants = 250;

bool ReadMix(const std::string& text, Mix* mix) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  return parts.size() == 4 && absl::SimpleAtoi(parts[0], &mix->acquire) &&
         absl::SimpleAtoi(parts[1], &mix->release) &&
         absl::SimpleAtoi(parts[2], &mix->work) &&
         absl::SimpleAtoi(parts[3], &mix->rest) &&
         mix->acquire + mix->release + mix->work + mix->rest > 0;
}

}  // namespace

FlagValues LoadFlags(LoadOptions* options) {
  return {{"--gmbd", Path(&options->gmbd)},
          {"--device", Path(&options->device)},
          {"--tenants", Number(&options->tenants, 1U)},
          {"--sessions", Number(&options->sessions, 1U)},
          {"--processes", Number(&options->processes, 1U)},
          {"--seed", Number(&options->seed, uint64_t{1})},
          {"--mix",
           [options](const std::string& text) {
             return ReadMix(text, &options->mix);
           }},
          {"--lease-mib", Number(&options->lease_mib, 1U)},
          {"--leases", Number(&options->leases, 1U)},
          {"--pool-mib", Number(&options->pool_mib, 1U)},
          {"--pause", Time(&options->pause)},
          {"--kill-client", Time(&options->kill_client)}};
}

absl::Status Complete(LoadOptions* options) {
  if (options->gmbd.empty()) {
    absl::StatusOr<std::string> found = cli::FindBroker();
    if (!found.ok()) return found.status();
    options->gmbd = *std::move(found);
  }
  if (options->tenants > kMostLoadTenants ||
      options->sessions > Tally::kMostSessions) {
    return absl::InvalidArgumentError(
        "at most 250 tenants and 4,096 sessions\n");
  }
  options->processes = std::min(options->processes, options->sessions);
  options->tenants = std::min(options->tenants, options->processes);
  if (options->pool_mib == 0) {
    options->pool_mib = std::max(
        options->sessions * options->leases * options->lease_mib / 2, 64U);
  }
  if (options->seed == 0) options->seed = std::random_device{}();
  return absl::OkStatus();
}

}  // namespace gmb::bench
