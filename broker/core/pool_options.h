#ifndef GMB_BROKER_CORE_POOL_OPTIONS_H_
#define GMB_BROKER_CORE_POOL_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "broker/core/device_worker.h"
#include "broker/machine/slab_pool.h"
#include "device/copier.h"
#include "quota/amount.h"

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
  // What the operator asked for. The pool grows to it when memory that others
  // held at the start comes free; not set: it stays at its target.
  std::optional<quota::Amount> wanted = {};
  // Kept free for processes past the broker, when a share is wanted.
  uint64_t headroom_bytes = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_POOL_OPTIONS_H_
