#ifndef GMB_BROKER_MACHINE_RECLAIM_INDEX_H_
#define GMB_BROKER_MACHINE_RECLAIM_INDEX_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "broker/machine/lease.h"
#include "quota/units.h"

namespace gmb::broker {

struct State;

// All that reclaim has to know of all leases, kept up to date with each of
// them, so that no turn has to look at all: which may be taken, what is on its
// way back, whose answer is due, and whether anything has changed since a plan
// was made.
//
// It follows from the leases and their sessions: Touch(lease) reads them anew,
// and is called wherever one of these facts changes. A value, part of State.
class ReclaimIndex {
 public:
  using Listed =
      absl::btree_map<quota::TenantId, absl::btree_set<quota::LeaseId>>;

  void Touch(const State& state, Lease& lease);
  // The lease has ended.
  void Forget(Lease& lease);
  void ForgetTenant(quota::TenantId tenant);
  // Whether Touch would change anything but the marks: never, between events.
  [[nodiscard]] bool IsTrueOf(const State& state, const Lease& lease) const;

  // Leases on the device that some demand may take some time, now or once their
  // gates have parked; by tenant.
  [[nodiscard]] const Listed& ListedIn(quota::PoolId pool) const;
  // Whether one of them has not been given back in time.
  [[nodiscard]] bool HasOverdue(quota::PoolId pool,
                                quota::TenantId tenant) const;

  // The session's first there that is not shared, on the device or away.
  [[nodiscard]] std::optional<quota::LeaseId> FirstOwn(quota::PoolId pool,
                                                       uint64_t session) const;
  // On their way back, those of dead sessions too; `pausing`: with what is to
  // be evicted once its session's pause has taken effect.
  [[nodiscard]] uint64_t IncomingBytes(quota::PoolId pool,
                                       std::optional<quota::TenantId> tenant,
                                       bool pausing) const;
  [[nodiscard]] bool AnyAwaitsPause(quota::PoolId pool) const;

  // Grows whenever something changes that could help a demand: what plans were
  // made for before is looked at again then.
  [[nodiscard]] uint64_t changes(quota::PoolId pool) const;
  [[nodiscard]] uint64_t changes(quota::PoolId pool,
                                 quota::TenantId tenant) const;
  // Grows only where more could be taken than before: not when a lease that
  // could be taken leaves, or has left. Requests need no more than that: their
  // lacking bytes say what else has changed for them.
  [[nodiscard]] uint64_t gains(quota::PoolId pool) const;
  void MarkChanged(quota::PoolId pool, quota::TenantId tenant);
  void MarkChanged(quota::PoolId pool);
  // A standing demand sleeps until its tenant's figure grows.
  void Sleep(quota::PoolId pool, quota::TenantId tenant);
  // Whether one that sleeps may be woken; asked once.
  [[nodiscard]] bool TakeWoken() { return std::exchange(woken_, false); }
  // Leases that were overdue and have changed, or have ended; told once.
  [[nodiscard]] std::set<quota::LeaseId> TakeLate() {
    return std::exchange(late_, {});
  }

  // When the next client should have answered, and for which lease.
  [[nodiscard]] quota::Instant answers_due() const {
    return answers_.empty() ? quota::Instant::Max() : answers_.begin()->first;
  }
  [[nodiscard]] quota::LeaseId FirstAnswer() const {
    return answers_.begin()->second;
  }

 private:
  struct Sums {
    uint64_t coming_bytes = 0;
    uint64_t awaiting_bytes = 0;  // a pause
    uint64_t overdue = 0;         // leases
    uint64_t changes = 0;
    bool slept_on = false;
  };
  struct Part {
    Sums sums;
    uint64_t gains = 0;
    absl::flat_hash_map<quota::TenantId, Sums> tenants;
    Listed listed;
    absl::btree_set<std::pair<uint64_t, quota::LeaseId>> own;  // by session
  };

  void Mark(Sums& sums);
  // There is less that could be taken of the tenant.
  void MarkLess(Part& part, Sums& its);
  void Book(const Lease& lease, const ReclaimEntry& entry);
  void Unbook(const Lease& lease, const ReclaimEntry& entry);

  std::map<quota::PoolId, Part> parts_;
  std::set<std::pair<quota::Instant, quota::LeaseId>> answers_;
  std::set<quota::LeaseId> late_;
  uint64_t last_change_ = 0;
  bool woken_ = false;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_RECLAIM_INDEX_H_
