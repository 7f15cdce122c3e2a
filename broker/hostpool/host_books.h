#ifndef GMB_BROKER_HOSTPOOL_HOST_BOOKS_H_
#define GMB_BROKER_HOSTPOOL_HOST_BOOKS_H_

#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "broker/hostpool/extent_set.h"
#include "device/hostpool/host_extent.h"
#include "quota/units.h"

namespace gmb::broker {

// The books of the host pool: which lease's bytes lie where.
//
// A PRESERVE lease *reserves* room when it becomes soft, so that it can always
// be evicted later. That room fits the pool and, but for Adopt, the tenant's
// limit at that time. It has no place yet. An eviction, or a copy that is made
// ahead of need, *places* it; a copy that was completed makes it *true*. A
// restore, or a write to the lease by its owner, ends that.
//
// No tenant sees another's bytes: room is neither cleared nor shared, but bytes
// leave the pool only by TrueCopy, which answers for the lease that filled them
// since they were placed, and for nobody else.
//
// A value without threads, locks or memory: the core decides with it under its
// lock. Bytes; multiples of the pool's granularity. Leases that it does not
// know have no room: asking about them is no error.
class HostBooks {
 public:
  enum class Outcome {
    kReserved,
    kOff,          // there is no host pool
    kTenantLimit,  // above the tenant's limit
    kPoolFull,     // reserved by others
  };
  struct Answer {
    Outcome outcome;
    uint64_t deficit_bytes = 0;  // that are lacking; 0 when reserved
  };

  // The parts of a tenant's, or of all tenants', room.
  struct Amounts {
    uint64_t reserved_bytes = 0;
    uint64_t placed_bytes = 0;  // of the reserved
    uint64_t true_bytes = 0;    // of the placed: evicted or backed contents
  };

  // 0: no host pool; every Reserve is refused as kOff.
  explicit HostBooks(uint64_t capacity_bytes)
      : capacity_(capacity_bytes), free_(capacity_bytes) {}

  // Of what a tenant may reserve; the pool's size where none was set. Room
  // reserved already stays, above the limit or not.
  void SetLimit(quota::TenantId tenant, uint64_t bytes);
  // The tenant is gone; leases that it still has keep their room.
  void ForgetTenant(quota::TenantId tenant);

  // Room for a lease of this size, all or nothing. Without it the lease's bytes
  // are hard. A lease that has room keeps it, and nothing more is reserved.
  [[nodiscard]] Answer Reserve(quota::TenantId tenant, quota::LeaseId lease,
                               uint64_t bytes);

  // The room of a lease that another broker has had: reserved, whatever the
  // tenant's limit is by now, and with `copy`, if there is any, where its true
  // copy lies. False, and it has none: the pool is too small for it, or others
  // have that place.
  [[nodiscard]] bool Adopt(quota::TenantId tenant, quota::LeaseId lease,
                           uint64_t bytes,
                           const std::vector<device::HostExtent>& copy);

  // Where the lease's contents are to be copied, in the order of its bytes; the
  // same extents while placed already. Empty without room, and while its copy
  // is true, which may be all there is of the contents: MarkUntrue first. Costs
  // the number of extents: many only where many small leases came and went.
  [[nodiscard]] const std::vector<device::HostExtent>& Place(
      quota::LeaseId lease);
  // The copy to that place is complete.
  void MarkTrue(quota::LeaseId lease);
  // The lease's contents on the device may differ from now on.
  void MarkUntrue(quota::LeaseId lease);
  // Where a complete copy of the lease's contents lies; null without one.
  [[nodiscard]] const std::vector<device::HostExtent>* TrueCopy(
      quota::LeaseId lease) const;

  // The lease is over: its place and its room are nobody's. No copier may use
  // the place any more: while a copy is in flight the lease is kept as it is
  // (its end can wait for the copier's answer).
  void Release(quota::LeaseId lease);

  [[nodiscard]] uint64_t capacity_bytes() const { return capacity_; }
  [[nodiscard]] uint64_t unreserved_bytes() const {
    return capacity_ - total_.reserved_bytes;
  }
  [[nodiscard]] bool HasRoom(quota::LeaseId lease) const {
    return leases_.contains(lease);
  }
  // The answer of Reserve to a lease that has no room yet.
  [[nodiscard]] Answer CheckRoom(quota::TenantId tenant, uint64_t bytes) const;
  // Whether a new lease of this size could get room now.
  [[nodiscard]] bool HasRoomFor(quota::TenantId tenant, uint64_t bytes) const {
    return CheckRoom(tenant, bytes).outcome == Outcome::kReserved;
  }
  [[nodiscard]] const Amounts& total() const { return total_; }
  // Grows whenever there may be room that there was not before.
  [[nodiscard]] uint64_t gains() const { return gains_; }
  [[nodiscard]] Amounts of(quota::TenantId tenant) const;
  [[nodiscard]] uint64_t limit_bytes(quota::TenantId tenant) const;

 private:
  struct Tenant {
    uint64_t limit_bytes;
    Amounts amounts = {};
  };
  struct Room {
    quota::TenantId tenant;
    uint64_t bytes = 0;
    std::vector<device::HostExtent> place = {};  // empty: not placed
    bool is_true = false;
  };

  Tenant& TenantOf(quota::TenantId tenant);
  Room* Find(quota::LeaseId lease);
  void SetTrue(Room* room, bool is_true);

  const uint64_t capacity_;
  ExtentSet free_;
  absl::btree_map<quota::LeaseId, Room> leases_;  // grows without a pause
  absl::flat_hash_map<quota::TenantId, Tenant> tenants_;
  Amounts total_;
  uint64_t gains_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_HOSTPOOL_HOST_BOOKS_H_
