// All leases, each charged to the books of its pool.
#ifndef GMB_QUOTA_LEASES_H_
#define GMB_QUOTA_LEASES_H_

#include <cstdint>
#include <optional>

#include "absl/container/btree_map.h"
#include "quota/pools.h"
#include "quota/request.h"
#include "quota/view.h"

namespace gmb::quota {

class Leases {
 public:
  // Null: there is none. Valid until the next lease is granted or ends.
  [[nodiscard]] const LeaseView* Find(LeaseId id) const {
    const auto it = table_.find(id);
    return it == table_.end() ? nullptr : &it->second;
  }
  // One that must be there.
  [[nodiscard]] const LeaseView& Of(LeaseId id) const;
  [[nodiscard]] uint64_t size() const { return table_.size(); }
  [[nodiscard]] uint64_t last() const { return last_; }
  // Ids go on from there.
  void GoOnFrom(uint64_t last_id);

  // The pool and the tenant's account are there, and the bytes are a multiple of
  // the granularity.
  LeaseId Grant(const LeaseView& lease, Pools& pools);
  // The id must be new.
  void Adopt(const AdoptedLease& lease, Pools& pools);
  // Answers the lease; none: there is no such one.
  std::optional<LeaseView> End(LeaseId id, Pools& pools);

  // The lease; null: there is no such one, or nothing to change.
  const LeaseView* SetHard(LeaseId id, bool hard, Pools& pools);
  const LeaseView* Evict(LeaseId id, Pools& pools);
  // One that must be there, as a soft lease.
  const LeaseView& BringBack(LeaseId id, Pools& pools);
  // False: there is no such lease.
  bool Share(LeaseId id);

  // Adds the leases of a Restore up to parts, in the order of pools, and to
  // sessions.
  void CollectParts(Request& request) const;

 private:
  void Charge(const LeaseView& lease, Pools& pools);
  static void Move(LeaseView& lease, bool hard, bool evicted, Pools& pools);

  uint64_t last_ = 0;
  // A tree: a table that grows, or sweeps what was erased, moves all of them in
  // the one event that it happens in.
  absl::btree_map<LeaseId, LeaseView> table_;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_LEASES_H_
