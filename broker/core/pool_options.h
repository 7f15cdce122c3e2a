#ifndef GMB_BROKER_CORE_POOL_OPTIONS_H_
#define GMB_BROKER_CORE_POOL_OPTIONS_H_

#include <cstdint>
#include <memory>

#include "broker/core/device_worker.h"
#include "broker/machine/slab_pool.h"
#include "device/copier.h"

namespace gmb::broker {

// A device pool as the daemon sets it up.
struct PoolOptions {
  std::unique_ptr<DeviceWorker> worker;
  // Null: leases with contents to be kept stay on the device.
  std::unique_ptr<device::Copier> copier;
  uint64_t target_bytes = 0;
  // What a share of the pool's size is of: the device's free memory at the
  // start less the headroom, as configured.
  uint64_t share_of_bytes = 0;
  SlabPool::Options slabs;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_POOL_OPTIONS_H_
