#ifndef GMB_BROKER_CORE_FREE_AUDIT_H_
#define GMB_BROKER_CORE_FREE_AUDIT_H_

#include <cstdint>
#include <map>

#include "quota/units.h"

namespace gmb::broker {

// Explains a device's free figure.
//
//   free = baseline - live - unreturned - outside
//
// baseline is the free figure before the first slab, or what the caller has
// raised it to since; live what the allocator has created and not destroyed.
// When a tenant's slabs are destroyed and the free figure does not rise by as
// much, that tenant still holds the rest: it is unreturned, and charged to it
// until the free figure rises. Any shortage beyond that was taken by processes
// past the broker: outside. Outside bytes use up the headroom first; beyond it
// they are missing from the pool.
//
// A rise is credited to unreturned bytes first. Another
// process that exits at that moment is then taken for the debtor: the sum stays
// right, and the split heals when the debtor's own bytes return. A process
// that takes memory while slabs are destroyed (a CUDA context, say) adds to a
// debt in the same way, until it exits; the window is kept short, since slabs
// of a dead process are destroyed once its memory is back.
//
// Where the allocator names the slabs that did not come back (host), their
// holders owe these bytes whatever the free figure suggests: no rise pays for
// them, and no other tenant is charged for them.
//
// A value without threads, locks or devices; owned by a device worker.
class FreeAudit {
 public:
  // `tolerance_bytes`: differences up to it per observation are noise (the
  // driver's own small allocations), and not held against anyone.
  FreeAudit(uint64_t baseline_bytes, uint64_t tolerance_bytes)
      : baseline_(baseline_bytes),
        tolerance_(tolerance_bytes),
        free_(baseline_bytes) {}

  // The free figure is taken to follow what we do ourselves until it is read.
  void OnCreated(uint64_t bytes);
  // Slabs last held by `tenant` were destroyed between two readings, and
  // `created_bytes` created in turn (and told by OnCreated).
  struct Destroyed {
    uint64_t bytes = 0;
    uint64_t created_bytes = 0;
    uint64_t free_before = 0;
    uint64_t free_after = 0;
    // At most so much has this process itself taken meanwhile, for other
    // things than slabs: it is nobody's debt.
    uint64_t own_bytes = 0;
  };
  void OnDestroyed(quota::TenantId tenant, const Destroyed& destroyed);
  // Slabs that no tenant ever held were destroyed.
  void OnReadyDestroyed(uint64_t bytes);
  // The debts of tenants to the broker before this one, whose baseline this one
  // has: before the first reading, which gives back what is back.
  void Inherit(const std::map<quota::TenantId, uint64_t>& owed);
  // The figure was read, before slabs are destroyed: a process that ends has
  // given back by then, and that rise is not to be lost in theirs.
  void OnFreeRead(uint64_t free_bytes);
  // `held`: what the allocator itself counts as not back, by its last holder.
  void OnReading(uint64_t free_bytes,
                 std::map<quota::TenantId, uint64_t> held = {});
  // Bytes that processes hold that are no clients of ours, as far as the driver
  // names them, was so much more than at the baseline.
  void OnStrangers(uint64_t bytes);

  [[nodiscard]] const std::map<quota::TenantId, uint64_t>& unreturned() const {
    return unreturned_;
  }
  [[nodiscard]] uint64_t unreturned_bytes() const { return unreturned_sum_; }
  [[nodiscard]] uint64_t outside_bytes() const;
  // Of the unreturned bytes: what strangers hold beyond the outside bytes. A
  // hint that changes no debt: a stranger may also have been handed a slab by
  // its holder, and a tenant whose debts others can take over has no limit.
  [[nodiscard]] uint64_t unreturned_outside_bytes() const;
  // More is free than the baseline explains: what others held at the start and
  // have given back. 0 within the tolerance.
  [[nodiscard]] uint64_t risen_bytes() const;
  // From now on they are accounted for: at most the risen bytes.
  void RaiseBaseline(uint64_t bytes);
  [[nodiscard]] uint64_t live_bytes() const { return live_; }
  [[nodiscard]] uint64_t free_bytes() const { return free_; }
  [[nodiscard]] uint64_t baseline_bytes() const { return baseline_; }

 private:
  [[nodiscard]] uint64_t Shortfall() const;
  void Credit(uint64_t bytes);
  void ChargeHeld();

  uint64_t baseline_;
  const uint64_t tolerance_;
  uint64_t live_ = 0;
  uint64_t free_;
  std::map<quota::TenantId, uint64_t> unreturned_;
  uint64_t unreturned_sum_ = 0;
  std::map<quota::TenantId, uint64_t> held_;  // known to be owed
  uint64_t strangers_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_FREE_AUDIT_H_
