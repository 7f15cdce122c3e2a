// A Restore that comes back in parts, lease by lease, while the bytes of the
// rest are on their way (docs/quota.md, "A Restore in parts").
#ifndef GMB_QUOTA_IN_PART_H_
#define GMB_QUOTA_IN_PART_H_

#include <vector>

#include "quota/admission.h"
#include "quota/claim.h"
#include "quota/leases.h"
#include "quota/pools.h"
#include "quota/request.h"
#include "quota/waiters.h"

namespace gmb::quota {

// Of a Restore of this pool alone, which is the first in order that lacks bytes
// there: its leases that fit into what is free, beside those bytes that are
// kept for others; none where that is less than a sixteenth of what it asks for.
// Looks at each.
std::vector<LeaseId> FittingNow(const PoolState& pool, const Claims& claims,
                                const Leases& leases, const Waiter& waiter);

// The bytes that came back for a request whose rest waits, or waits no more: see
// Account::back_in_part_bytes.
void MarkBackInPart(const Request& request, Pools& pools, bool waits);

// A lease is off the device again, `taken` from there, or is no more: if it had
// come back for a request whose rest waits, it no longer counts. Its pool is to
// be settled.
void ForgetBackInPart(LeaseId lease, uint64_t bytes, bool taken,
                      Waiters& waiters, Pools& pools);

}  // namespace gmb::quota

#endif  // GMB_QUOTA_IN_PART_H_
