#ifndef GMB_BROKER_CORE_CORE_OPTIONS_H_
#define GMB_BROKER_CORE_CORE_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "broker/core/device_worker.h"
#include "broker/core/slab_pool.h"
#include "device/copier.h"
#include "quota/backing.h"
#include "quota/planner.h"

namespace gmb::broker {

struct CoreOptions {
  uint64_t max_handles = 32768;  // slabs alive in granted leases, all tenants
  uint32_t max_sessions = 1024;
  uint32_t max_requests_per_session = 1024;  // unanswered at once
  // Why max_handles or max_sessions are below what was asked for; empty: they
  // are not.
  std::string few_files;
  std::string default_tenant;  // of peers on the shared socket; empty: none
  quota::PlannerOptions planner;
  quota::BackingOptions backing;
  std::string
      tenants_dir;  // where tenants' socket directories are; for reports
};

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

#endif  // GMB_BROKER_CORE_CORE_OPTIONS_H_
