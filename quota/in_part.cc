// Says which leases of a waiting Restore may come back before the others.
#include "quota/in_part.h"

namespace gmb::quota {

// The request lacks bytes, so that at least one of its leases has to wait.
// Shared ones do: others may come to wait for them by this request.
std::vector<LeaseId> FittingNow(const PoolState& pool, const Claims& claims,
                                const Leases& leases, const Waiter& waiter) {
  const Request& asked = waiter.asked;
  const Account& account = *pool.ledger.Find(asked.tenant);
  const bool borrows =
      asked.parts.front().ask.bytes > account.GuaranteeLeftBytes();
  std::vector<LeaseId> fitting;
  Ask ask{.bytes = 0, .hard = false, .restore = true};
  for (const LeaseId lease : asked.leases) {
    const LeaseView& its = leases.Of(lease);
    if (its.session == SessionId{}) continue;
    Ask more = ask;
    more.bytes += its.bytes;
    const int64_t lacking_bytes =
        borrows ? LackingBesideClaims(pool, account, more, claims, waiter.place)
                : static_cast<int64_t>(more.bytes) - pool.ledger.FreeBytes();
    if (lacking_bytes > 0) continue;
    ask = more;
    fitting.push_back(lease);
  }
  return fitting;
}

void MarkBackInPart(const Request& request, Pools& pools, bool waits) {
  if (request.back_bytes == 0) return;
  Ledger& ledger = pools.Find(request.parts.front().pool)->ledger;
  Account& account = *ledger.Find(request.tenant);
  const uint64_t others_bytes =
      account.back_in_part_bytes - (waits ? 0 : request.back_bytes);
  ledger.SetBackInPart(account,
                       others_bytes + (waits ? request.back_bytes : 0));
}

}  // namespace gmb::quota
