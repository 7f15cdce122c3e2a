#ifndef GMB_BROKER_DAEMON_HOST_POOL_SETUP_H_
#define GMB_BROKER_DAEMON_HOST_POOL_SETUP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "broker/config/broker_config.h"
#include "broker/daemon/pool_setup.h"
#include "device/hostpool/host_pool.h"
#include "device/hostpool/machine_memory.h"

namespace gmb::broker {

// The memory that the host pool is to be made of.
struct HostMemory {
  base::UniqueFd kept = {};  // the last broker's; invalid: new memory
  uint64_t bytes = 0;        // 0: there is to be none
  // Nobody has set its size: its pages come into use as they are needed.
  bool by_default = false;
  std::string note = {};  // of a default: of what it is a share, or why none
};

// The memory that the configuration asks for. Without a size in it: a quarter
// of what is available beside full host devices, and not more than all pools
// whose leases can be evicted; none where that cannot be told.
[[nodiscard]] HostMemory HostMemoryOf(
    const BrokerConfig& config, const std::vector<PreparedPool>& pools,
    const absl::StatusOr<device::AvailableMemory>& available);

// The host pool; null when there is to be none. Page-locked for the GPUs among
// the devices, in the background. RESOURCE_EXHAUSTED when the machine has no
// such memory.
[[nodiscard]] absl::StatusOr<std::unique_ptr<device::HostPool>> OpenHostPool(
    const BrokerConfig& config, HostMemory memory);

// Gives every pool whose device can evict a copier.
[[nodiscard]] absl::Status AddCopiers(device::HostPool* host_pool,
                                      std::vector<PreparedPool>* pools);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_HOST_POOL_SETUP_H_
