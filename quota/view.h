// Snapshots of the engine for reports. Figures in bytes unless the name says
// otherwise.
#ifndef GMB_QUOTA_VIEW_H_
#define GMB_QUOTA_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "quota/tenant_quota.h"
#include "quota/units.h"

namespace gmb::quota {

struct PoolView {
  uint64_t target_bytes = 0;  // the size that was asked for
  // The size now; above the target while a shrink is pending.
  uint64_t capacity_bytes = 0;
  uint64_t granularity_bytes = 0;
  uint64_t missing_bytes = 0;
  uint64_t leased_bytes = 0;
  uint64_t unreturned_bytes = 0;
  uint64_t evicted_bytes = 0;  // of the leased ones, not on the device
  uint64_t charged_bytes = 0;  // on the device: leased - evicted + unreturned
  uint64_t hard_bytes = 0;     // of these, what cannot be taken by force
  uint64_t guaranteed_bytes = 0;  // sum of the guarantees as asked for
  // Sum over tenants of max(guarantee in force, hard).
  uint64_t committed_bytes = 0;
  // capacity - missing - committed: what hard leases can borrow. 0 when broken.
  uint64_t free_to_borrow_bytes = 0;
  // committed + missing - capacity, when missing or unreturned bytes have
  // broken the sum: until it is 0 nothing above the guarantees is granted.
  uint64_t broken_bytes = 0;
  uint64_t waiting = 0;  // requests
  uint64_t waiting_bytes = 0;
  uint64_t leases = 0;
  uint64_t handles = 0;
  bool draining = false;
};

struct TenantPoolView {
  TenantQuota quota{};  // as it was asked for
  uint64_t requested_guarantee_bytes = 0;
  // In force; rises to what was asked for.
  uint64_t effective_guarantee_bytes = 0;
  uint64_t limit_bytes = 0;
  uint64_t leased_bytes = 0;
  uint64_t evicted_bytes = 0;   // of the leased ones, not on the device
  uint64_t resident_bytes = 0;  // leased - evicted + unreturned
  uint64_t hard_bytes = 0;      // of these, what cannot be taken by force
  uint64_t unreturned_bytes = 0;
  uint64_t borrowed_bytes = 0;    // resident above the guarantee
  uint64_t over_limit_bytes = 0;  // leased and not evicted, above the limit
  // The most that an Acquire without waiting could get now, of hard bytes and
  // of soft ones.
  uint64_t obtainable_bytes = 0;
  uint64_t obtainable_soft_bytes = 0;
  uint64_t leases = 0;
  uint64_t handles = 0;
  uint64_t waiting = 0;  // requests
  uint64_t waiting_bytes = 0;
};

struct TenantView {
  uint32_t max_handles = 0;
  uint64_t handles = 0;  // over all pools
  uint64_t waiting = 0;  // requests, over all pools
};

struct LeaseView {
  SessionId session{};  // 0: shared
  TenantId tenant{};
  PoolId pool{};
  uint64_t bytes = 0;
  uint32_t handles = 0;
  bool hard = true;  // cannot be taken by force; false when evicted
  bool evicted = false;
};

// One that another engine has granted; see Engine::Adopt.
struct AdoptedLease {
  LeaseId id{};
  LeaseView lease{};
};

// Of a tenant's waiting requests in one pool, those that are to be shown.
struct WaitingPage {
  uint64_t after_place = 0;  // of the last one that was shown
  size_t most = std::numeric_limits<size_t>::max();
};

// One waiting request and what it waits for.
struct WaitingView {
  uint64_t place = 0;  // in the order of arrival, from 1
  RequestId request{};
  SessionId session{};
  uint64_t bytes = 0;
  Instant since{};
  Instant deadline{};
  // kTenantLimit: its own tenant must release. kPoolExhausted: others must.
  Reason blocked_by = Reason::kPoolExhausted;
  uint64_t deficit_bytes = 0;
  // Its bytes are there, and are kept for requests that are served first.
  bool claimed = false;
};

// A waiting request for which a pool keeps bytes.
struct ClaimView {
  RequestId request{};
  TenantId tenant{};
  uint64_t bytes = 0;  // that it claims in this pool
  bool within_guarantee = false;
  // When it lets others pass, unless it is served before that; Max: not while
  // it waits.
  Instant until = Instant::Max();
};

// The part of TenantPoolView that a plan asks for, and that costs nothing.
struct Holding {
  uint64_t guarantee_bytes = 0;  // in force
  uint64_t resident_bytes = 0;
  uint64_t over_limit_bytes = 0;
  double weight = 1;
};

// A waiting request whose bytes are not there, in one pool.
struct Shortage {
  RequestId request{};
  SessionId session{};
  TenantId tenant{};
  PoolId pool{};
  uint64_t bytes = 0;  // that it asks for here
  // That have to be taken from somebody so that it, and those that are served
  // before it, can be served. The part of the sum that missing and unreturned
  // bytes have broken is not in it: nobody is evicted for those.
  uint64_t lacking_bytes = 0;
  bool within_guarantee = false;
  // From when on it claims what comes free; in the past while it does. Max: not
  // known yet, or another's claim decides. Within a guarantee it is Max: no one
  // borrows what such a request lacks.
  Instant collects_from = Instant::Max();
  // Within a guarantee the one that the request came with, which may be over: it
  // was put off since.
  Instant deadline{};
};

// A tenant that holds more than its guarantee while another waits.
struct Borrower {
  TenantId tenant{};
  uint64_t borrowed_bytes = 0;
};

// Why a tenant's requests wait in a pool, and what stands in their way.
struct Explanation {
  std::vector<WaitingView> waiting;  // of this tenant, oldest first: a page
  uint64_t all_waiting = 0;          // of this tenant
  std::vector<Borrower> borrowers;   // other tenants, largest first, at most 8
  // The claims that this tenant's requests to borrow have to leave whole, in
  // the order in which they are served; at most 8.
  std::vector<ClaimView> claims;
  uint64_t waiting_before =
      0;  // requests of other tenants that are served first
  uint64_t kept_for_guarantees_bytes =
      0;  // free, but guaranteed to other tenants
  uint64_t missing_bytes = 0;
  uint64_t unreturned_bytes = 0;  // of all tenants
  uint64_t broken_bytes = 0;      // see PoolView
  uint64_t shrinking_bytes = 0;   // capacity above the target
  bool draining = false;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_VIEW_H_
