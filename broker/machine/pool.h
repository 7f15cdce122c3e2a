#ifndef GMB_BROKER_MACHINE_POOL_H_
#define GMB_BROKER_MACHINE_POOL_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "broker/machine/device_job.h"
#include "broker/machine/look.h"
#include "broker/machine/mappings.h"
#include "broker/machine/owned.h"
#include "broker/machine/owners.h"
#include "broker/machine/paced_creates.h"
#include "broker/machine/slab_pool.h"
#include "device/handle.h"
#include "gmb/v1/session.pb.h"
#include "quota/amount.h"
#include "quota/units.h"

namespace gmb::broker {

// The device around a pool, as far as it is known. The pool keeper's.
struct PoolDevice {
  // Free when the broker started, with what others have given back since.
  uint64_t baseline_bytes = 0;
  uint64_t share_of_bytes = 0;          // see PoolOptions
  std::optional<quota::Amount> wanted;  // likewise
  // More than the baseline has been free since then, this much at least.
  struct Rise {
    quota::Instant since;
    uint64_t bytes = 0;
  };
  std::optional<Rise> rise;
  DeviceReading reading;
  std::map<quota::TenantId, uint64_t> unreturned;  // rounded up to granules
  uint64_t missing_bytes = 0;  // taken by processes past the broker
  // Unreturned bytes of tenants that were deleted: missing as well.
  uint64_t orphaned_bytes = 0;
  // Given to the worker, or held, and not yet answered.
  uint32_t jobs = 0;
  PacedCreates paced;
  bool draining = false;
  bool lost = false;
  std::string problem;  // empty when all is well
  quota::Instant next_audit;
  quota::Nanoseconds audit_interval{0};
  quota::Instant refill_after;  // after a failed refill
  Mappings mappings;
};

// Leases whose slabs are being filled from the host pool, and since when there
// has been one. The host desk's.
struct CopiesIn {
  uint32_t leases = 0;
  quota::Instant since;
};

// The last plan for its requests, and when the next is due. The reclaimer's.
struct PoolPlan {
  struct Planned {
    quota::RequestId request;
    bool within_guarantee = false;
    bool collects = false;

    friend bool operator==(const Planned&, const Planned&) = default;
  };
  std::optional<Planned> planned_for;
  uint64_t planned_bytes = 0;  // that were lacking then
  Look look;                   // of requests that lack bytes
  quota::Instant replan_at = quota::Instant::Max();
  // A request lacked bytes there last; none: none ever did.
  std::optional<quota::Instant> lacked_at;
  uint64_t trimmers_from = 0;  // the session that TrimmerRows begin with
  // Of requests that lack bytes: Demand::trim_by.
  absl::flat_hash_map<quota::RequestId, quota::Instant> trim_by;
};

// One device pool of the broker: its slabs, and the device around it.
struct Pool {
  // How often the free figure is read. While bytes are unreturned, often at
  // first: those of a killed process come back within some 60 ms.
  static constexpr quota::Nanoseconds kAuditInterval = std::chrono::seconds(1);
  static constexpr quota::Nanoseconds kFirstAudit =
      std::chrono::milliseconds(5);

  [[nodiscard]] const std::string& uuid() const { return info.uuid; }
  // Of the device's memory that others leave, what is not the pool's.
  [[nodiscard]] uint64_t headroom_bytes() const {
    const uint64_t capacity = slabs->composition().capacity_bytes;
    return device->baseline_bytes - std::min(device->baseline_bytes, capacity);
  }
  // And is not taken by processes past the broker.
  [[nodiscard]] uint64_t headroom_left_bytes() const {
    const uint64_t headroom = headroom_bytes();
    return headroom - std::min(headroom, device->reading.outside_bytes);
  }

  // A share is of share_of_bytes, see PoolOptions.
  [[nodiscard]] uint64_t ResolveSize(const quota::Amount& size) const {
    return size.Resolve(
        size.is_fraction() ? device->share_of_bytes : device->baseline_bytes,
        info.granularity_bytes);
  }
  // Leases with such contents can be taken off the device.
  [[nodiscard]] bool CanMove(v1::Contents contents) const {
    return contents != v1::RESIDENT && info.kind != device::DeviceKind::kIpc &&
           (contents == v1::DISCARD || has_copier);
  }

  const quota::PoolId id;
  const device::DeviceInfo info;
  const bool has_copier = false;  // if not, contents stay on the device

  Owned<SlabPool, PoolKeeper> slabs;
  Owned<PoolDevice, PoolKeeper> device;
  Owned<CopiesIn, HostDesk> copies_in;
  Owned<PoolPlan, Reclaimer> plan;
  // As of the last turn: one within its guarantee lacks bytes.
  Owned<bool, Gatekeeper> guarantee_lacks;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_POOL_H_
