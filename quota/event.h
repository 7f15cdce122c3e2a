// The engine's events. Every change of its state is one of these.
#ifndef GMB_QUOTA_EVENT_H_
#define GMB_QUOTA_EVENT_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "quota/tenant_quota.h"
#include "quota/units.h"

namespace gmb::quota {

// Makes a pool or resizes it. Answered by PoolApplied, PoolPending or
// PoolRefused. The target is rounded down to the granularity, which cannot
// change while the pool exists.
struct PoolSet {
  PoolId pool{};
  uint64_t target_bytes = 0;
  uint64_t granularity_bytes = 0;  // every lease is a multiple of it; above 0
};

// A draining pool makes no new grants, and waiting requests are denied. Leases
// stay, and evicted ones may come back.
struct PoolDrain {
  PoolId pool{};
  bool draining = false;
};

// Bytes of the pool that were lost to others: an absolute figure, 0 when
// healed.
struct MissingChanged {
  PoolId pool{};
  uint64_t missing_bytes = 0;
  // Of those, what comes back by itself: no request is refused for good for it.
  uint64_t returning_bytes = 0;
};

// Bytes given back by this tenant but still held by one of its processes: an
// absolute figure. To charge bytes of a lease that is coming back, send this
// before its Released, so that nobody is granted them in between.
struct UnreturnedChanged {
  PoolId pool{};
  TenantId tenant{};
  uint64_t unreturned_bytes = 0;
};

// Makes a tenant or changes its limit on handles (slabs), over all pools.
// Without a QuotaSet for a pool its limit there is 0. No answer.
struct TenantSet {
  TenantId tenant{};
  uint32_t max_handles = 4096;
};

// Answered by TenantRemoved or TenantRefused (kBadState while it holds leases
// or unreturned bytes, or waits).
struct TenantRemove {
  TenantId tenant{};
};

// Answered by QuotaApplied, QuotaPending or QuotaRefused.
struct QuotaSet {
  PoolId pool{};
  TenantId tenant{};
  TenantQuota quota{};
};

// The session's waiting requests are denied (kCancelled). Its leases stay
// charged until a Released for each of them: only the caller knows when the
// slabs are back.
struct SessionClosed {
  SessionId session{};
};

// Answered by Granted, Denied or Waiting; after Waiting, by Granted or Denied
// later. An Acquire whose id is that of a waiting request is ignored.
struct Acquire {
  RequestId request{};
  SessionId session{};
  TenantId tenant{};
  PoolId pool{};
  uint64_t bytes = 0;    // rounded up to the granularity; Granted says how many
  uint32_t handles = 1;  // slabs the lease will consist of; at least 1
  Instant deadline{};    // not after now: do not wait
  // Whether the lease's bytes cannot be taken by force (docs/quota.md, "Hard
  // and soft"). Soft ones may be borrowed from what others do not use of their
  // guarantees.
  bool hard = true;
};

// A resident lease's bytes can no longer be taken by force, or can from now on.
// Becoming hard may break the sum of guarantees: ask Check first where there is
// a choice. Ignored when there is no such lease, or it is evicted.
struct HardChanged {
  LeaseId lease{};
  bool hard = true;
};

// The lease's bytes are off the device and free for others; the lease stays and
// counts against its tenant's limit. Also undoes a Restored that the device
// could not carry out. The lease is soft from then on. If its session waits for
// a Restore, it joins the oldest one. Ignored when there is no such lease, or
// it is evicted.
struct Evicted {
  LeaseId lease{};
};

// Brings evicted leases back, all at once over all their pools, or, once what
// they lack is on its way, in parts (BytesLeaving): those of one session, or of
// a group of sessions of one tenant. Answered by Restored or Denied, or by
// Waiting and one of them later. Leases that are not known or are resident
// count as done; one that another Restore waits for is refused (kBadState),
// leases of several tenants too (kBadRequest).
//
// A Restore with the id of one that waits, of one pool alone, has it wait until
// the later of the deadlines, with the new `linger`, as long as it began to wait
// less than EngineOptions::longest_series ago. It says nothing else; with the id
// of another request that waits it is ignored.
struct Restore {
  RequestId request{};
  SessionId session{};  // that waits, and whose end ends the wait
  std::vector<LeaseId> leases;
  Instant deadline{};  // not after now: do not wait
  // One that has waited until then keeps its place and its claim for so long
  // more, and is denied only if it was not sent again by then.
  Nanoseconds linger{0};
};

// So many bytes of the pool are on their way off the device, and come free
// before long. Where they are all that the first request lacks, and that is a
// Restore of several leases of this pool alone, those of its leases that have
// room now come back at once (Restored::in_part), but for shared ones; the
// request keeps its turn and waits for the rest. Once one of them is evicted
// again, all that it lacks comes back together; so it does while less than a
// sixteenth of it has room. Says nothing otherwise.
struct BytesLeaving {
  PoolId pool{};
  uint64_t bytes = 0;
};

// The lease is its tenant's from now on and no session's: several use it, and a
// session's Restore brings it back only if it names it. Ignored when there is
// no such lease.
struct Shared {
  LeaseId lease{};
};

// While a session is being paused none of its requests above its tenant's
// guarantee may wait: a scope that waits for one would never end. Those that
// wait are denied, and so are new ones (Denied::pausing).
struct SessionPausing {
  SessionId session{};
  bool pausing = false;
};

// Withdraws a waiting request, answered by Denied (kCancelled). Ignored when it
// no longer waits.
struct Cancel {
  RequestId request{};
};

// The lease that a waiting Acquire asks for could be taken by force from now on:
// it waits as one for soft bytes, with the place, the claim and the deadline that
// it has. Ignored when it no longer waits, or is a soft one.
struct Softened {
  RequestId request{};
};

// The lease's bytes are free again. Ignored when there is no such lease.
struct Released {
  LeaseId lease{};
};

// The device could not create the slabs of a granted lease: its bytes go back,
// as with Released. The caller reports what is short as MissingChanged first,
// and may ask again.
struct GrantFailed {
  LeaseId lease{};
};

// Time has passed: requests whose deadline is over are denied. (Every other
// event does so too.)
struct Tick {};

using Event =
    std::variant<PoolSet, PoolDrain, MissingChanged, UnreturnedChanged,
                 TenantSet, TenantRemove, QuotaSet, SessionClosed, Acquire,
                 Cancel, Released, GrantFailed, Tick, HardChanged, Evicted,
                 Restore, SessionPausing, Shared, BytesLeaving, Softened>;

}  // namespace gmb::quota

#endif  // GMB_QUOTA_EVENT_H_
