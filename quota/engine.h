// The quota engine: who may have how many bytes of which pool, and when.
//
// Pure: no clock, thread, lock, log or I/O; the same events at the same times
// give the same effects. Not thread-safe: the caller serialises. It accounts
// for bytes and handles and knows nothing of slabs, devices or names.
// docs/quota.md has the rules.
#ifndef GMB_QUOTA_ENGINE_H_
#define GMB_QUOTA_ENGINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "quota/effect.h"
#include "quota/event.h"
#include "quota/view.h"

namespace gmb::quota {

struct EngineOptions {
  uint64_t max_handles = 32768;  // of all tenants and pools together
  // How long, in all, smaller requests may pass one that waits for bytes at the
  // head of a queue, and how long it then holds at first. Above 0.
  Nanoseconds pass_window = std::chrono::seconds(1);
  // How long it holds at first where soft or returning bytes could cover its
  // claim.
  Nanoseconds covered_hold = std::chrono::seconds(8);
  // How long after it began to wait a Restore that is sent again goes on with what
  // it had. Its holds grow with its age: then it is a new request.
  Nanoseconds longest_series = std::chrono::minutes(2);
};

class Engine {
 public:
  explicit Engine(const EngineOptions& options = {});
  ~Engine();
  Engine(const Engine& other);
  Engine(Engine&& other) noexcept;
  Engine& operator=(Engine&& other) noexcept;

  // Changes state, as nothing else does but Adopt. `now` that runs backwards counts as
  // the latest seen. Takes O(log n) for n tenants and waiting requests, plus as
  // much for every effect; changes of pools and quotas take O(n).
  [[nodiscard]] Effects Handle(const Event& event, Instant now);

  // Before the first request: leases that another engine has granted, and that
  // are there. They are charged whatever the quotas are by now: a pool that they
  // do not fit is larger until they are gone, a guarantee that they leave no
  // room for is pending. Ids of leases go on from `last_lease`. Those whose pool
  // or tenant is not known, or whose id is taken, are left out.
  [[nodiscard]] Effects Adopt(const std::vector<AdoptedLease>& leases,
                              uint64_t last_lease, Instant now);

  // When the next waiting request expires, or the next claim begins or ceases
  // to hold: the caller sends a Tick then. None: nothing waits. It may be over:
  // of very many that expire together, one event denies some.
  std::optional<Instant> NextDeadline() const;

  // Refuses what Handle would refuse, without changing anything. To set several
  // quotas as one change, check all of them first (one for each pool: two for
  // the same pool are not summed). A tenant that was not set yet counts as a
  // new one.
  std::optional<Refusal> Check(const QuotaSet& change) const;
  std::optional<Refusal> Check(const PoolSet& change) const;
  std::optional<Refusal> Check(const TenantRemove& change) const;
  // kOvercommitted: hard bytes and guarantees would exceed the pool.
  std::optional<Refusal> Check(const HardChanged& change) const;

  // Reports; none for what the engine does not know. Ids are sorted.
  std::vector<PoolId> Pools() const;
  std::vector<TenantId> Tenants() const;
  std::optional<PoolView> Pool(PoolId id) const;
  std::optional<TenantView> Tenant(TenantId id) const;
  // A tenant without a quota in a pool has a view of zeros.
  std::optional<TenantPoolView> TenantPool(TenantId tenant, PoolId id) const;
  std::optional<Holding> HoldingOf(TenantId tenant, PoolId id) const;
  std::optional<LeaseView> Lease(LeaseId id) const;
  bool IsWaiting(RequestId request) const;
  // Of one that waits: what it would be told if its time were over now.
  struct Denial {
    Denied denied;
    uint64_t bytes = 0;  // that it asks for, in all pools
  };
  Denial DenialOf(RequestId request) const;
  // The Restore that waits for this lease, if one does.
  std::optional<RequestId> RestoreOf(LeaseId id) const;
  // Of the requests that are served first, the first whose bytes are not there
  // even when `incoming_bytes` more come free: what reclaim is for. The oldest
  // within their guarantees, added up; and only when none of those lacks bytes,
  // the first in the order of those that borrow, beside what is claimed before
  // it. One that lets others pass for the time being is named when no other
  // is. None: nobody waits for bytes that others could give. A request of
  // several pools is found in each. O(n) for n requests within guarantees that
  // wait; of those that borrow at most 16 are looked at.
  std::optional<Shortage> NextShortage(PoolId id,
                                       uint64_t incoming_bytes) const;
  // For people, not for decisions: O(n) for n tenants and waiting requests.
  std::optional<Explanation> Explain(TenantId tenant, PoolId id,
                                     const WaitingPage& page = {}) const;
  // Its part that WaitingPage bounds, alone.
  std::vector<WaitingView> WaitingOf(TenantId tenant, PoolId id,
                                     const WaitingPage& page) const;

  uint64_t handles() const;  // in use, of all tenants and pools
  uint64_t leases() const;
  uint64_t last_lease() const;  // the greatest id that was ever granted
  uint64_t waiting() const;     // requests
  // Waiting requests that were looked at because a pool or a quota changed, in
  // all.
  uint64_t denial_looks() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_ENGINE_H_
