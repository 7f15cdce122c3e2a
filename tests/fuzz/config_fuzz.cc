// Any text as a configuration file: read or refused, never a crash or a hang.
#include <string>

#include "broker/config/config_file.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace gmb::fuzz {

void FuzzConfig(Bytes bytes) {
  broker::BrokerConfig config;
  const absl::Status parsed =
      broker::ParseConfigFile(Input(bytes).Rest(), "fuzz.yaml", &config);
  Require(parsed.ok() || !parsed.message().empty(), "a refusal says why");
  for (const auto& tenant : config.tenants) {
    const auto& quota = tenant.policy.quota;
    Require(
        quota.guarantee.IsValid() && quota.limit.IsValid() && quota.weight > 0,
        "a quota that was read is valid");
    const auto& reclaim = tenant.policy.reclaim;
    Require(reclaim.host_limit.IsValid() &&
                reclaim.min_residency.count() >= 0 &&
                reclaim.pause_grace.count() >= 0,
            "rules of reclaim that were read are valid");
  }
  Require(config.host_pool_bytes.value_or(0) % (uint64_t{2} << 20) == 0,
          "the host pool has whole granules");
}

}  // namespace gmb::fuzz
