#ifndef GMB_BROKER_DAEMON_POOL_SETUP_H_
#define GMB_BROKER_DAEMON_POOL_SETUP_H_

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/config/broker_config.h"
#include "broker/core/core.h"
#include "broker/machine/records.h"
#include "broker/machine/slab.h"

namespace gmb::broker {

// A device opened and its pool sized, not yet in the core.
struct PreparedPool {
  std::string name;  // as configured: "cuda:0"
  PoolOptions options;
};

// Slabs of leases that the last broker has left on a device, and what was free
// there before any of them, and before clients had contexts; by its UUID.
struct KeptOnDevice {
  std::vector<SlabRecord> slabs;
  uint64_t baseline_bytes = 0;  // 0: not known
};
using KeptSlabs = std::map<std::string, KeptOnDevice>;
// Those that devices have imported.
using ImportedSlabs = absl::flat_hash_map<SlabId, Slab>;

// Opens every configured device, and imports its kept slabs. `stored_targets` (by UUID, of the device's
// free memory) are what operators have resized pools to. They win, unless the
// file has another size for the pool than in `by_file`, when it was last
// applied (by UUID).
[[nodiscard]] absl::StatusOr<std::vector<PreparedPool>> PreparePools(
    const BrokerConfig& config,
    const std::map<std::string, quota::Amount>& stored_targets, Keeper* keeper,
    std::atomic<SlabId>* slab_ids,
    const std::map<std::string, std::string>& by_file = {},
    const KeptSlabs& kept = {});

// The devices' configured names with their UUIDs.
[[nodiscard]] std::map<std::string, std::string> UuidsOf(
    const std::vector<PreparedPool>& pools);

[[nodiscard]] ImportedSlabs ImportedBy(const std::vector<PreparedPool>& pools);

// The pool's size, as configured, on a device with this much free memory. A
// host device's pool is all of it: `config` speaks of GPUs.
[[nodiscard]] absl::StatusOr<uint64_t> PoolBytes(const BrokerConfig& config,
                                                 const DeviceConfig& device,
                                                 uint64_t free_bytes,
                                                 uint64_t granularity_bytes);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_POOL_SETUP_H_
