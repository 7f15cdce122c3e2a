#ifndef GMB_BROKER_CORE_POOL_OPTIONS_H_
#define GMB_BROKER_CORE_POOL_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "broker/core/device_worker.h"
#include "broker/machine/slab_pool.h"
#include "device/hostpool/copier.h"
#include "quota/amount.h"

namespace gmb::broker {

// A device pool as the daemon sets it up.
struct PoolOptions {
  std::unique_ptr<DeviceWorker> worker;
  // Null: leases with contents to be kept stay on the device.
  std::unique_ptr<device::Copier> copier;
  uint64_t target_bytes = 0;
  // A share of the pool's size is of this: the device's free memory at the
  // start less the headroom, as configured.
  uint64_t share_of_bytes = 0;
  SlabPool::Options slabs;
  // The size that the operator asked for. The pool grows to it as others give
  // back what they held at the start. Not set: it stays at its target.
  std::optional<quota::Amount> wanted = {};
  // That on the device with nobody else on it: the pool may become as large.
  uint64_t largest_bytes = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_POOL_OPTIONS_H_
