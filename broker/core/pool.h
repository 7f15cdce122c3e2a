#ifndef GMB_BROKER_CORE_POOL_H_
#define GMB_BROKER_CORE_POOL_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "broker/core/device_worker.h"
#include "broker/core/slab_pool.h"
#include "device/copier.h"
#include "gmb/v1/session.pb.h"
#include "quota/amount.h"
#include "quota/units.h"

namespace gmb::broker {

// One device pool of the broker: its slabs, its worker, and what is known of
// the device around it. Guarded by the core's lock, but for the worker.
struct Pool {
  // How often the free figure is read. While bytes are unreturned, often at
  // first: those of a killed process come back within some 60 ms.
  static constexpr quota::Nanoseconds kAuditInterval = std::chrono::seconds(1);
  static constexpr quota::Nanoseconds kFirstAudit =
      std::chrono::milliseconds(5);

  // What the last plan was made for.
  struct Planned {
    quota::RequestId request;
    uint64_t lacking_bytes = 0;

    friend bool operator==(const Planned&, const Planned&) = default;
  };

  Pool(quota::PoolId pool_id, std::unique_ptr<DeviceWorker> device_worker,
       std::unique_ptr<device::Copier> its_copier,
       const SlabPool::Options& options)
      : id(pool_id),
        worker(std::move(device_worker)),
        copier(std::move(its_copier)),
        slabs(options) {}

  [[nodiscard]] const device::DeviceInfo& info() const {
    return worker->info();
  }
  [[nodiscard]] const std::string& uuid() const { return worker->info().uuid; }

  // A share is of share_of_bytes, see PoolOptions.
  [[nodiscard]] uint64_t ResolveSize(const quota::Amount& size) const {
    return size.Resolve(
        size.is_fraction() ? share_of_bytes : worker->baseline_bytes(),
        info().granularity_bytes);
  }
  // Leases with such contents can be taken off the device.
  [[nodiscard]] bool CanMove(v1::Contents contents) const {
    return contents != v1::RESIDENT &&
           info().kind != device::DeviceKind::kIpc &&
           (contents == v1::DISCARD || copier != nullptr);
  }

  quota::PoolId id;
  std::unique_ptr<DeviceWorker> worker;
  std::unique_ptr<device::Copier> copier;  // null: contents stay on the device
  SlabPool slabs;
  DeviceReading reading;
  std::map<quota::TenantId, uint64_t> unreturned;  // rounded up to granules
  uint64_t share_of_bytes = 0;                     // see PoolOptions
  uint64_t missing_bytes = 0;  // taken by processes past the broker
  // Unreturned bytes of tenants that were deleted: missing as well.
  uint64_t orphaned_bytes = 0;
  uint32_t jobs = 0;  // given to the worker and not yet answered
  bool draining = false;
  bool lost = false;
  std::string problem;  // empty when all is well
  quota::Instant next_audit;
  quota::Nanoseconds audit_interval{0};
  quota::Instant refill_after;  // after a failed refill
  std::optional<Planned> planned_for;
  quota::Instant replan_at = quota::Instant::Max();
  // Of requests that lack bytes: Demand::trim_by.
  absl::flat_hash_map<quota::RequestId, quota::Instant> trim_by;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_POOL_H_
