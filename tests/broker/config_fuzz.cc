// Any text as a configuration file: read or refused, never a crash or a hang.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "broker/config/config_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  gmb::broker::BrokerConfig config;
  const absl::Status parsed = gmb::broker::ParseConfigFile(
      std::string(reinterpret_cast<const char*>(data), size), "fuzz.yaml",
      &config);
  if (!parsed.ok() && parsed.message().empty()) std::abort();
  for (const auto& tenant : config.tenants) {
    const auto& quota = tenant.policy.quota;
    if (!quota.guarantee.IsValid() || !quota.limit.IsValid() ||
        !(quota.weight > 0))
      std::abort();
    const auto& reclaim = tenant.policy.reclaim;
    if (!reclaim.host_limit.IsValid() || reclaim.min_residency.count() < 0 ||
        reclaim.pause_grace.count() < 0)
      std::abort();
  }
  if (config.host_pool_bytes % (uint64_t{2} << 20) != 0) std::abort();
  return 0;
}
